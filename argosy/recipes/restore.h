#pragma once

#include <memory>
#include <optional>
#include <string>

#include "argosy/checkpoint/read_weights.h"
#include "argosy/engine/state_dict.h"
#include "argosy/recipes/assembly.h"
#include "argosy/recipes/description.h"
#include "argosy/recipes/settings.h"

// Internal to the room: weights and what they need, where they lie and which model they are of.
namespace argosy::recipes {

/// What an evaluation or prediction needs. If `weights` belongs to a run, it starts from the run's
/// settings; given settings replace them.
struct Restored {
  std::unique_ptr<Assembly> assembly{};
  std::string weights{};  ///< the file or folder that was read
  std::string split{};
  double label_smoothing = 0;  ///< the run's, so that figures can be compared
  std::string amp = "off";     ///< the run's too, unless the user gives one
};
/// Weights that a run has left.
struct RunWeights {
  std::string path{};     ///< a file or a checkpoint's folder
  bool averaged = false;  ///< by --ema: the checkpoint's part "ema" replaces what it has of "model"
};
/// Returns the weights of a path: of a run's folder model.pt or its newest checkpoint, whichever
/// came later. `run` says whether a checkpoint has an average beside them; nullopt: it does not.
/// Errors: CheckpointError when there is nothing.
[[nodiscard]] RunWeights weights_in(const std::string& path,
                                    const std::optional<StoredRecipe>& run);
/// The same by the recipe that lies in the folder: a checkpoint that is named itself has none.
[[nodiscard]] RunWeights weights_in(const std::string& path);
/// checkpoint::load_weights() and read_weights() of those, whose errors speak of --model.
engine::LoadResult load_weights(const torch::nn::Module& module,
                                const RunWeights& weights,
                                const checkpoint::ReadWeightsOptions& read = {},
                                engine::LoadOptions load = {.convert_dtype = true});
[[nodiscard]] engine::StateDict read_weights(const RunWeights& weights,
                                             checkpoint::ReadWeightsOptions options = {});

/// Makes the model and reads its weights. `pictures`: what it looks at instead of a data set;
/// nullptr: none.
/// Errors: CheckpointError when there are no weights, or they belong to another model.
[[nodiscard]] Restored restore(const EvaluateSettings& settings,
                               std::shared_ptr<const datasets::Source> pictures = nullptr);

}  // namespace argosy::recipes
