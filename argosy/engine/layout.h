#pragma once

#include <ATen/core/Tensor.h>

#include "argosy/engine/named.h"

namespace argosy::engine {

/// Every element of the storage behind the tensor, from its first to its last, belongs to it
/// exactly once: it can be walked as one flat range (contiguous, channels_last, transposed).
[[nodiscard]] bool is_dense(const at::Tensor& tensor);

/// Both are dense and the same flat index means the same element in both. Strides of dims of size
/// one do not matter.
[[nodiscard]] bool same_storage_order(const at::Tensor& a, const at::Tensor& b);

/// lay_out(module, MemoryFormat::kChannelsLast). Feed images in the same layout. Call it before
/// DistributedDataParallel takes the module; with its memory_format there is no need for either.
void to_channels_last(const torch::nn::Module& module);

template <typename T>
requires(!detail::IsModule<T>) void to_channels_last(const T& holder) {
  to_channels_last(module_of(holder));
}

}  // namespace argosy::engine
