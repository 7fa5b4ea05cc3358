#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

namespace argosy::optim {

/// Returns the index, in the order of memory, of the first element that is NaN or infinite; nullopt
/// if there is no such element. It looks at floating-point tensors that are dense and on the CPU,
/// and returns nullopt for others.
/// Cost: reads the elements once.
[[nodiscard]] std::optional<int64_t> first_nonfinite(const at::Tensor& tensor);

}  // namespace argosy::optim
