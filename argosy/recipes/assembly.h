#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argosy/loss/any_loss.h"
#include "argosy/metrics/any_metric.h"
#include "argosy/recipes/data.h"
#include "argosy/recipes/models.h"
#include "argosy/recipes/settings.h"
#include "argosy/train/model.h"

#include <nlohmann/json_fwd.hpp>

namespace argosy::recipes {

struct StoredRecipe;

/// The parts that assemble() puts together.
struct Wanted {
  std::string model{};                       ///< "resnet18:zero_init_residual=yes"
  std::string data{};                        ///< "cifar10:PATH"
  std::optional<int64_t> image_size{};       ///< unset: the model's own
  std::optional<int64_t> sequence_length{};  ///< unset: the model's own
  std::string tokenizer{};                   ///< empty: a token for each byte
  bool recompute = false;
  uint64_t seed = 1;  ///< seed of the weights
};

/// A model and data that fit each other: pictures, or text. What training and evaluation ask of
/// them, whatever they are.
class Assembly {
 public:
  Assembly() = default;
  virtual ~Assembly() = default;
  Assembly(const Assembly&) = delete;
  Assembly& operator=(const Assembly&) = delete;
  Assembly(Assembly&&) = delete;
  Assembly& operator=(Assembly&&) = delete;

  DataSpec data_spec{};
  std::string model_text{};  ///< the model's name with all of its options
  BuiltModel model{};

  [[nodiscard]] virtual std::vector<std::string> splits() const = 0;
  /// Returns the number of samples of a split. Errors: UsageError naming the splits when there is
  /// no such split.
  [[nodiscard]] virtual int64_t size(const std::string& split) const = 0;
  [[nodiscard]] virtual std::string training_split() const = 0;
  /// Empty: there is none.
  [[nodiscard]] virtual std::string evaluation_split() const = 0;
  /// What size() counts: "samples", "windows of 256 tokens".
  [[nodiscard]] virtual std::string things() const { return "samples"; }
  [[nodiscard]] virtual std::vector<std::string> class_names() const { return {}; }

  [[nodiscard]] virtual loss::Loss loss(double label_smoothing) const = 0;
  [[nodiscard]] virtual std::vector<metrics::AnyMetric> metrics() const = 0;
  virtual train::History fit(train::Model& model,
                             const TrainSettings& resolved,
                             const train::FitOptions& options) const = 0;
  [[nodiscard]] virtual train::Logs evaluate(train::Model& model,
                                             const std::string& split,
                                             const train::EvaluateOptions& options) const = 0;

  /// Completes settings by what model and data imply. Errors: UsageError for those that are about
  /// another kind of data.
  virtual void resolve(TrainSettings& settings) const = 0;
  /// Errors: UsageError for resolved settings that fit() would refuse.
  virtual void check(const TrainSettings& resolved) const = 0;
  /// Adds what restore() needs beside the settings.
  virtual void describe(StoredRecipe& recipe) const = 0;
  /// For people who plan: the data, and the model's size.
  [[nodiscard]] virtual nlohmann::ordered_json about_data(const TrainSettings& resolved) const = 0;
  [[nodiscard]] virtual nlohmann::ordered_json about_model() const = 0;
};

/// Opens the data and makes the model. The weights depend on `seed` only, so they are equal on all
/// ranks. Collective over the job, if it is joined.
/// Errors: UsageError for unknown names and options, a size that the model does not take, or a
/// model of another task; DataError of the files.
[[nodiscard]] std::unique_ptr<Assembly> assemble(const Wanted& wanted);

}  // namespace argosy::recipes
