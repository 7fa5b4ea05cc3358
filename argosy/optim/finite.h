#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

namespace argosy::optim {

/// Returns the index, in the order of memory, of the first element that is NaN or infinite; nullopt
/// if there is none, for integers, and for a tensor that is not dense or not on the CPU.
/// Cost: reads the elements once.
[[nodiscard]] std::optional<int64_t> first_nonfinite(const at::Tensor& tensor);

}  // namespace argosy::optim
