#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argosy/engine/state_dict.h"
#include "argosy/engine/summary.h"
#include "argosy/recipes/row.h"
#include "argosy/recipes/spec.h"
#include "argosy/train/model.h"

namespace argosy::recipes {

/// The sizes that the data requires of a model.
struct ModelSize {
  int64_t outputs = 10;  ///< classes, or coordinates
  int64_t channels = 3;  ///< channels of the pictures
};

/// A network whose type is erased.
struct BuiltModel {
  std::shared_ptr<torch::nn::Module> module{};
  /// Wraps it for this process's job. Collective.
  std::function<train::Model()> model{};
  /// Returns a summary for inputs of this size: [N, channels, height, width]. Runs one forward.
  std::function<engine::Summary(const std::vector<int64_t>& input_size)> summary{};
  /// Calls it on [N, channels, height, width].
  std::function<at::Tensor(const at::Tensor& pictures)> forward{};
};

struct ModelEntry {
  TableRow row{};
  int64_t side = 0;      ///< side of the pictures that it takes; 0: any
  int64_t channels = 0;  ///< 0: as many as the data has
  /// Side to which pictures of differing sizes are brought, unless the user names one.
  int64_t usual_side = 224;
  bool points_only = false;  ///< it gives x and y of points, not classes
  /// Only a model of pictures has a `build`. Of text it is a text::Gpt, of clicks a
  /// recommend::ClickModel.
  Material material = Material::kPictures;
  std::function<BuiltModel(const ModelSize& size, const Values& values)> build{};
};

/// Returns the options of "deepfm", which all models of clicks take.
[[nodiscard]] std::vector<OptionRow> click_options();

/// Returns all models by name.
[[nodiscard]] const std::vector<ModelEntry>& models();

/// Makes the model that `text` names ("resnet18"), with as many outputs and channels as `weights`
/// have.
/// Errors: UsageError when there is no such model, it has no such option or is a language model.
[[nodiscard]] BuiltModel model_for(const std::string& text, const engine::StateDict& weights);

}  // namespace argosy::recipes
