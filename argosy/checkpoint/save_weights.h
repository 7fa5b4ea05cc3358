#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "argosy/comm/group.h"
#include "argosy/engine/state_dict.h"

namespace argosy::checkpoint {

/// Writes weights in the format that the ending of `path` names:
///
///     checkpoint::save_weights(net, "weights.pt");
///
/// | ending | read in Python by |
/// |---|---|
/// | .pt, .pth | torch.load(path, weights_only=True) |
/// | .safetensors | safetensors.torch.load_file(path) |
/// | .pdparams | paddle.load(path), of a module only: it alone knows whose weights Paddle
/// transposes |
///
/// The file appears whole or not at all; a failure leaves what was there. Tensors are written from
/// the CPU and only their own elements, even when they are views of something larger (a bucket).
/// Strides (channels_last) and tied weights are kept in .pt alone; elsewhere tensors become
/// contiguous, and tied weights become copies.
/// Errors: CheckpointError: the system's words with the path; an entry that the format has no place
///   for, by name. UsageError: an ending that is none of these.
/// Cost: one copy of the weights in memory when they do not lie alone in CPU memory.
void save_weights(const torch::nn::Module& module, const std::string& path);
void save_weights(const engine::StateDict& dict, const std::string& path);

/// Rank 0 writes, and all ranks return when the file is there. Collective over `group`; without a
/// group: this process alone. Errors: rank 0's, on every rank.
void save_weights_together(const torch::nn::Module& module,
                           const std::string& path,
                           const comm::Group& group);

/// The same for what holds or wraps a module.
template <typename T>
requires(!engine::detail::IsModule<T> &&
         !std::is_same_v<T, engine::StateDict>) void save_weights(const T& holder,
                                                                  const std::string& path) {
  save_weights(engine::module_of(holder), path);
}

/// Whether save_weights() writes files of this ending: ".pt".
[[nodiscard]] bool is_weights_ending(std::string_view ending);

}  // namespace argosy::checkpoint
