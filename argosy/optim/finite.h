#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

namespace argosy::optim {

/// Returns the index, in the order of memory, of the first element that is NaN or infinite. Returns
/// nullopt if there is none. Integers, and tensors that are not dense or not on the CPU, are not
/// looked at and give nullopt too.
/// Cost: reads the elements once.
[[nodiscard]] std::optional<int64_t> first_nonfinite(const at::Tensor& tensor);

}  // namespace argosy::optim
