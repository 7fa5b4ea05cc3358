#pragma once

#include <memory>
#include <string>

#include "argosy/checkpoint/read_weights.h"
#include "argosy/engine/state_dict.h"
#include "argosy/recipes/assembly.h"
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
/// Weights as a run leaves them.
struct RunWeights {
  std::string path{};     ///< of a file, or of a checkpoint's folder
  bool averaged = false;  ///< the run's --ema: its part "ema" comes over the model's
};
/// Returns the weights of a path: of a run's folder model.pt or its newest checkpoint, whichever
/// came later. Errors: CheckpointError when there is nothing.
[[nodiscard]] RunWeights weights_in(const std::string& path);
/// checkpoint::load_weights() and read_weights() of those. Errors: CheckpointError unless all are
/// the module's; but a file may lack the counts of batches, which Paddle does not keep.
void load_weights(const torch::nn::Module& module,
                  const RunWeights& weights,
                  const checkpoint::ReadWeightsOptions& read = {},
                  bool convert_dtype = true);
[[nodiscard]] engine::StateDict read_weights(const RunWeights& weights,
                                             checkpoint::ReadWeightsOptions options = {});

/// Makes the model and reads its weights. `pictures`: what it looks at instead of a data set;
/// nullptr: none.
/// Errors: CheckpointError when there are no weights, or they belong to another model.
[[nodiscard]] Restored restore(const EvaluateSettings& settings,
                               std::shared_ptr<const datasets::Source> pictures = nullptr);

}  // namespace argosy::recipes
