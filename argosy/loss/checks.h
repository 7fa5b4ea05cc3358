#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "argosy/loss/reduction.h"

// Checks of this room's losses before and after libtorch.
namespace argosy::loss {

/// Returns libtorch's number for the reduction.
[[nodiscard]] int64_t torch_reduction(Reduction reduction);

/// Errors: UsageError unless both have the same shape and are floating point.
void check_same_shape(const char* where, const at::Tensor& output, const at::Tensor& target);

/// Returns the result of `loss`. An error of libtorch becomes a UsageError with the text that
/// `explain` finds, or else with the first line of libtorch's own.
[[nodiscard]] at::Tensor guarded(const char* where,
                                 const std::function<at::Tensor()>& loss,
                                 const std::function<std::optional<std::string>()>& explain);
[[nodiscard]] at::Tensor guarded(const char* where, const std::function<at::Tensor()>& loss);

}  // namespace argosy::loss
