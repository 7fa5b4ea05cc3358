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

/// What the data asks of a model.
struct ModelSize {
  int64_t outputs = 10;  ///< classes, or coordinates
  int64_t channels = 3;  ///< of the pictures
};

/// A network whose type has been forgotten.
struct BuiltModel {
  std::shared_ptr<torch::nn::Module> module{};
  /// Wraps it for the job that this process is in. Collective.
  std::function<train::Model()> model{};
  /// What it does with pictures of this size: [N, channels, height, width]. One forward.
  std::function<engine::Summary(const std::vector<int64_t>& input_size)> summary{};
};

struct ModelEntry {
  Row row{};
  int64_t side = 0;      ///< of the pictures that it takes; 0: any
  int64_t channels = 0;  ///< 0: those of the data
  /// Side to which pictures of differing sizes are brought unless one is asked for.
  int64_t usual_side = 224;
  bool points_only = false;  ///< gives x and y of points, no classes
  std::function<BuiltModel(const ModelSize& size, const Values& values)> build{};
};

/// All models, by name.
[[nodiscard]] const std::vector<ModelEntry>& models();

/// The model that `text` names ("resnet18"), with as many outputs and channels as `weights` have.
/// Errors: UsageError: there is no such model, or it has no such option.
[[nodiscard]] BuiltModel model_for(const std::string& text, const engine::StateDict& weights);

}  // namespace argosy::recipes
