#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace argosy::text::ops {

/// The heads that lie beside each other in [N, T, (heads + 2 kv_heads) · head_width]: those of
/// queries, then of keys, then of values.
struct HeadShape {
  int64_t heads = 1;
  int64_t kv_heads = 1;  ///< a divisor of heads: each serves heads / kv_heads queries in turn
  int64_t head_width = 1;
};

/// Returns softmax(q kᵀ / √head_width) v, where a token sees itself and those before it.
///
/// Shape: qkv as HeadShape says → [N, T, heads · head_width]. `dropout`: probability for each
/// weight of the softmax.
/// Cost: on the CPU in f32 and bf16 it goes by blocks of queries, keeps one number for each query
/// and head, and computes the weights again in backward. That takes 0.59 (256 tokens, f32) to 0.22
/// (1,024 tokens) of the time of plain operators, and is no slower than libtorch 2.15's fused
/// operator: see benchmarks/results/2026-11-28-0132-gpt_step.md. Elsewhere, and with dropout, it is
/// libtorch's fused operator where there is one, else plain operators.
/// Source: Dao et al., "FlashAttention", 2022, for the weights that are computed again.
[[nodiscard]] at::Tensor causal_attention(const at::Tensor& qkv,
                                          const HeadShape& shape,
                                          double dropout = 0);

/// The same for queries [N, H, T, D] and keys and values [N, K, L, D] that are apart. The queries
/// are those of the last T of the L tokens.
[[nodiscard]] at::Tensor causal_attention(const at::Tensor& queries,
                                          const at::Tensor& keys,
                                          const at::Tensor& values,
                                          double dropout = 0);

/// Returns the bytes of the scores that are in memory at a time, for numbers of `item` bytes.
[[nodiscard]] int64_t bytes_of_scores(int64_t heads, int64_t tokens, int64_t item);

}  // namespace argosy::text::ops
