#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace argosy::text::ops {

/// Cosines and sines of the angles of rotary positions, f32 [context, head_width / 2] each.
struct RotaryTable {
  at::Tensor cosine{};
  at::Tensor sine{};
};

/// Returns the table of position · theta^(-2i / head_width), rounded from f64.
[[nodiscard]] RotaryTable rotary_table(int64_t context, int64_t head_width, double theta);

/// Returns `qkv` with the first `heads` heads of each token rotated; the others stay as they are.
/// Pairs are (i, i + head_width / 2), as in transformers' files.
///
/// Shape: [N, T, (heads and more) · head_width]; the first token stands at `position`.
/// Source: Su et al., "RoFormer", 2021.
[[nodiscard]] at::Tensor rotate(const at::Tensor& qkv,
                                const RotaryTable& table,
                                int64_t heads,
                                int64_t position);

}  // namespace argosy::text::ops
