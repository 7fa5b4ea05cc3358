#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argosy/recipes/assembly.h"
#include "argosy/text/models/gpt.h"
#include "argosy/text/token_file.h"
#include "argosy/text/token_windows.h"
#include "argosy/text/tokenizer.h"

namespace argosy::recipes {

/// A language model and the text that it learns from.
class LanguageAssembly final : public Assembly {
 public:
  LanguageAssembly(const Wanted& wanted, const text::Tokenizer& tokenizer);

  [[nodiscard]] std::vector<std::string> splits() const override;
  [[nodiscard]] int64_t size(const std::string& split) const override;
  [[nodiscard]] std::string training_split() const override;
  [[nodiscard]] std::string evaluation_split() const override;
  [[nodiscard]] std::string things() const override;
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
  void describe(StoredRecipe& /*recipe*/) const override {}  // the settings say all
  [[nodiscard]] nlohmann::ordered_json about_data(const TrainSettings& resolved) const override;
  [[nodiscard]] nlohmann::ordered_json about_model() const override;

 private:
  struct Split {
    std::string name{};
    text::TokenWindows windows;
  };
  [[nodiscard]] const text::TokenWindows& windows(const std::string& split) const;

  text::Tokenizer tokenizer_;
  std::string tokenizer_path_;
  text::Gpt gpt_{nullptr};
  std::vector<Split> splits_{};  // training first
};

/// assemble() for text. Errors: UsageError for pictures, too; those of the tokenizer, the text and
/// the model's shape.
[[nodiscard]] std::unique_ptr<Assembly> assemble_language(const Wanted& wanted);

/// True for a name that has a context of its own: "gpt2-medium", but not "gpt".
[[nodiscard]] bool is_published(const std::string& model);
/// Returns the shape of the model that is wanted, completed by the tokenizer and the length of a
/// window. Errors: UsageError for what does not fit together.
[[nodiscard]] text::GptOptions shape_of_model(const Wanted& wanted,
                                              const text::Tokenizer& tokenizer);
/// Returns a deferred model, which is whole nowhere where ranks divide it.
[[nodiscard]] text::Gpt deferred_gpt(const text::GptOptions& shape, bool recompute);

/// Returns the folder's config.json as a shape; nullopt: it is no folder of Hugging Face.
[[nodiscard]] std::optional<text::GptOptions> hugging_face_shape(const std::string& folder);
/// Loads the weights of a folder of Hugging Face: model.safetensors, or the files that
/// model.safetensors.index.json names.
/// Errors: UsageError for weights of another shape; CheckpointError with path.
void load_hugging_face(torch::nn::Module& gpt,
                       const text::GptOptions& shape,
                       const std::string& folder);

}  // namespace argosy::recipes
