#pragma once

#include <string>

#include "argosy/engine/state_dict.h"

namespace argosy::engine {

/// Writes parameters and buffers to `path`, atomically, as an archive that Python reads with
/// `torch.jit.load(path).state_dict()` and C++ with torch::load or load_weights(), names preserved.
///
/// The file appears whole or not at all: a temporary file in the same folder, fsync, rename, fsync
/// of the folder; a failure leaves what was there. Tensors are written from the CPU and only their
/// own elements, even when they are views of something larger (a bucket); tied weights become
/// copies. Errors: CheckpointError with the path and the system's words (no such folder, disk
/// full). Cost: one copy of the weights in memory when they do not lie alone in CPU memory.
void save_weights(const torch::nn::Module& module, const std::string& path);

/// The entries of a file by save_weights(), torch::save(module, …) or Python's torch.jit.save().
/// Errors: CheckpointError when there is no such file or it is none of these.
[[nodiscard]] StateDict read_weights(const std::string& path);

/// read_weights() and load_state_dict() in one; errors name the path.
LoadResult load_weights(const torch::nn::Module& module,
                        const std::string& path,
                        const LoadOptions& options = {});

template <typename T>
requires(!detail::IsModule<T>) void save_weights(const T& holder, const std::string& path) {
  save_weights(module_of(holder), path);
}

template <typename T>
requires(!detail::IsModule<T>) LoadResult
    load_weights(const T& holder, const std::string& path, const LoadOptions& options = {}) {
  return load_weights(module_of(holder), path, options);
}

}  // namespace argosy::engine
