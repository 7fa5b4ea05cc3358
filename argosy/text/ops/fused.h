#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "argosy/text/ops/kernel_kinds.h"

// Internal to the room: the common parts of its fused operators.
namespace argosy::text::ops {

/// True if the kernels can take it: f32 or bf16 in CPU memory, one element after the other.
/// Otherwise libtorch's operators run.
[[nodiscard]] bool can_fuse(const at::Tensor& x);
/// True of a weight that is undefined, or that can_fuse() takes.
[[nodiscard]] bool can_fuse_if_defined(const at::Tensor& x);

/// The numbers of a tensor, from element `at` on; of an undefined one none.
[[nodiscard]] kernels::Source source_of(const at::Tensor& x, int64_t at = 0);
[[nodiscard]] kernels::Target target_of(const at::Tensor& x, int64_t at = 0);

/// As a Function takes what may be undefined.
[[nodiscard]] c10::optional<at::Tensor> if_defined(const at::Tensor& x);

/// Returns the numbers as `type`, f32 or bf16: itself if it has that type. No gradient flows.
/// can_fuse() must be true of it.
[[nodiscard]] at::Tensor converted(const at::Tensor& x, at::ScalarType type);

/// Calls body(begin, end) for parts of `rows` rows of `width` elements, in parallel, so that a part
/// is worth a thread.
void for_rows(int64_t rows, int64_t width, const std::function<void(int64_t, int64_t)>& body);

/// Throws UsageError if backward() records a graph: the fused operators have no second derivative.
void refuse_second_derivative(std::string_view operation);

}  // namespace argosy::text::ops
