#pragma once

#include <ATen/core/Tensor.h>

namespace argosy::engine {

/// True if this libtorch computes attention and its gradient in one operator that keeps no weights:
/// from 2.0 on. 1.13 has one of a similar name without a gradient.
[[nodiscard]] bool has_fused_attention();

/// Returns softmax(q kᵀ / √D) v, where a token sees itself and those before it.
///
/// Shape: [N, H, T, D] each → the same. `dropout`: probability for each weight of the softmax.
/// Errors: UsageError unless has_fused_attention().
[[nodiscard]] at::Tensor fused_causal_attention(const at::Tensor& queries,
                                                const at::Tensor& keys,
                                                const at::Tensor& values,
                                                double dropout = 0);

}  // namespace argosy::engine
