#pragma once

#include <set>
#include <string>

#include "argosy/engine/state_dict.h"

// Internal to the room: a module's names and Paddle's.
namespace argosy::checkpoint {

/// Returns the names of the weights of linear layers, which Paddle keeps as [in, out].
[[nodiscard]] std::set<std::string> linear_weights(const torch::nn::Module& module);

/// Converts Paddle's entries to the module's: renames those of norms and transposes the weights of
/// linear layers, which Paddle keeps as [in, out]. Only the module knows which those are, because
/// square ones look alike.
[[nodiscard]] engine::StateDict from_paddle(const engine::StateDict& dict,
                                            const torch::nn::Module& module);
/// Converts the other way. Counts of batches (`num_batches_tracked`), which Paddle lacks, are left
/// out.
[[nodiscard]] engine::StateDict to_paddle(const engine::StateDict& dict,
                                          const torch::nn::Module& module);

}  // namespace argosy::checkpoint
