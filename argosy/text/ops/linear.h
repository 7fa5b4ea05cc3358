#pragma once

#include <ATen/core/Tensor.h>

namespace argosy::text::ops {

/// Returns x · weightᵀ + bias; the bias may be undefined.
///
/// Shape: x [..., I], weight [O, I], bias [O] → [..., O]. Values are those of at::linear(). Under
/// autocast to bf16 with gradients, the weight is rounded anew in each call, in one pass, and its
/// gradient is f32; autocast's cache is not used.
[[nodiscard]] at::Tensor linear(const at::Tensor& x,
                                const at::Tensor& weight,
                                const at::Tensor& bias);

}  // namespace argosy::text::ops
