// N sequences, T tokens of queries, L of keys; H heads of queries, K of keys, G = H / K of queries
// for each of keys; D values of a head.
#include "argosy/text/ops/causal_attention.h"

#include <cmath>
#include <limits>

#include <ATen/Functions.h>

namespace argosy::text::ops {

at::Tensor causal_attention(const at::Tensor& queries,
                            const at::Tensor& keys,
                            const at::Tensor& values,
                            double dropout) {
  const int64_t sequences = queries.size(0), heads = queries.size(1), tokens = queries.size(2);
  const int64_t kv_heads = keys.size(1), length = keys.size(2), head_width = queries.size(3);
  const int64_t group = heads / kv_heads;
  const at::Tensor q_nkgtd = (queries / std::sqrt(static_cast<double>(head_width)))
                                 .reshape({sequences, kv_heads, group * tokens, head_width});
  at::Tensor scores = at::matmul(q_nkgtd, keys.transpose(-1, -2))
                          .view({sequences, kv_heads, group, tokens, length});
  if (tokens > 1) {
    const at::Tensor later =
        at::ones({tokens, length}, scores.options().dtype(at::kBool)).triu(length - tokens + 1);
    scores = scores.masked_fill(later, -std::numeric_limits<double>::infinity());
  }
  at::Tensor weights = at::softmax(scores, -1);
  if (dropout > 0) {
    weights = at::dropout(weights, dropout, /*train=*/true);
  }
  return at::matmul(weights.view({sequences, kv_heads, group * tokens, length}), values)
      .view({sequences, heads, tokens, head_width});
}

at::Tensor causal_attention(const at::Tensor& qkv, const HeadShape& shape, double dropout) {
  const std::vector<at::Tensor> parts =
      qkv.unflatten(-1, {shape.heads + 2 * shape.kv_heads, shape.head_width})
          .transpose(1, 2)
          .split_with_sizes({shape.heads, shape.kv_heads, shape.kv_heads}, 1);
  return causal_attention(parts[0], parts[1], parts[2], dropout).transpose(1, 2).flatten(2);
}

}  // namespace argosy::text::ops
