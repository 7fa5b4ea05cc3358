#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "argosy/comm/group.h"
#include "argosy/engine/state_dict.h"

namespace argosy::checkpoint {

/// Writes weights in the format that the ending of `path` names.
///
///     checkpoint::save_weights(net, "weights.pt");
///
/// Python reads the formats by:
///
///     .pt, .pth      torch.load(path, weights_only=True)
///     .safetensors   safetensors.torch.load_file(path)
///     .pdparams      paddle.load(path); only from a module, which knows whose weights Paddle
///                    transposes
///
/// The file appears whole or not at all; after a failure the former file is still there. Only a
/// tensor's own elements are written, even if it is a view of something larger (a bucket). Only .pt
/// keeps strides (channels_last) and tied weights; in other formats tensors become contiguous and
/// tied weights become copies.
/// Errors: CheckpointError with the system's message and the path, or naming an entry that the
/// format cannot hold. UsageError for another ending.
/// Cost: one copy of the weights in memory, unless they lie alone in CPU memory.
void save_weights(const torch::nn::Module& module, const std::string& path);
void save_weights(const engine::StateDict& dict, const std::string& path);

/// Writes on rank 0 and returns on all ranks when the file is there. Collective over `group`;
/// without a group, this process writes.
/// Errors: rank 0's, on every rank.
void save_weights_together(const torch::nn::Module& module,
                           const std::string& path,
                           const comm::Group& group);

/// The same for a holder or a wrapper of a module.
template <typename T>
requires(!engine::detail::IsModule<T> &&
         !std::is_same_v<T, engine::StateDict>) void save_weights(const T& holder,
                                                                  const std::string& path) {
  save_weights(engine::module_of(holder), path);
}
template <typename T>
requires(!engine::detail::IsModule<T>) void save_weights_together(const T& holder,
                                                                  const std::string& path,
                                                                  const comm::Group& group) {
  save_weights_together(engine::module_of(holder), path, group);
}

/// True if save_weights() writes files with this ending: ".pt".
[[nodiscard]] bool is_weights_ending(std::string_view ending);

}  // namespace argosy::checkpoint
