#pragma once

#include <memory>
#include <string>
#include <vector>

#include "argosy/recipes/assembly.h"
#include "argosy/recipes/augment.h"

namespace argosy::recipes {

/// A model and the pictures that it learns from.
class PictureAssembly final : public Assembly {
 public:
  Task task = Task::kClass;  ///< of the data that the model learned
  std::unique_ptr<DataSet> data{};
  PictureShape shape{};
  ModelSize sizes{};

  [[nodiscard]] Examples training(const std::string& augment) const;
  [[nodiscard]] Examples evaluation(const std::string& split) const;
  /// Returns `augment` with "default" and "auto" replaced by names of transforms.
  [[nodiscard]] std::string augment_of(const std::string& augment) const;

  [[nodiscard]] std::vector<std::string> splits() const override { return data->splits(); }
  [[nodiscard]] int64_t size(const std::string& split) const override { return data->size(split); }
  [[nodiscard]] std::string training_split() const override { return data->training_split(); }
  [[nodiscard]] std::string evaluation_split() const override { return data->evaluation_split(); }
  [[nodiscard]] std::vector<std::string> class_names() const override { return data->classes(); }
  [[nodiscard]] loss::Loss loss(double label_smoothing) const override;
  [[nodiscard]] std::vector<metrics::AnyMetric> metrics() const override;
  train::History fit(train::Model& model,
                     const TrainSettings& resolved,
                     const train::FitOptions& options) const override;
  [[nodiscard]] train::Logs evaluate(train::Model& model,
                                     const std::string& split,
                                     const train::EvaluateOptions& options) const override;
  void resolve(TrainSettings& settings) const override;
  void check(const TrainSettings& resolved) const override;
  void describe(StoredRecipe& recipe) const override;
  [[nodiscard]] nlohmann::ordered_json about_data(const TrainSettings& resolved) const override;
  [[nodiscard]] nlohmann::ordered_json about_model() const override;
};

/// assemble() for pictures. Errors: UsageError for another kind of data, too.
[[nodiscard]] std::unique_ptr<PictureAssembly> assemble_pictures(const Wanted& wanted);
/// Pictures without labels, for a model that a recipe tells all of.
[[nodiscard]] std::unique_ptr<PictureAssembly> assemble_files(
    const StoredRecipe& about, std::shared_ptr<const datasets::Source> pictures);
/// Returns the assembly as one of pictures. Errors: UsageError in the name of `where` for text.
[[nodiscard]] const PictureAssembly& pictures_of(const Assembly& assembly, const char* where);

}  // namespace argosy::recipes
