#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "argosy/loss/reduction.h"

// What the losses of this room check before and after libtorch.
namespace argosy::loss {

/// libtorch's number of it.
[[nodiscard]] int64_t torch_reduction(Reduction reduction);

/// UsageError unless both have one shape and are floating point.
void check_same_shape(const char* where, const at::Tensor& output, const at::Tensor& target);

/// What `loss` returns; libtorch's errors become a UsageError with what `explain` finds, or else
/// with libtorch's own first line.
[[nodiscard]] at::Tensor guarded(const char* where,
                                 const std::function<at::Tensor()>& loss,
                                 const std::function<std::optional<std::string>()>& explain);
[[nodiscard]] at::Tensor guarded(const char* where, const std::function<at::Tensor()>& loss);

}  // namespace argosy::loss
