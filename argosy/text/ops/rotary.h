#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace argosy::text::ops {

/// Cosines and sines of the angles of rotary positions, f32 [context, head_width / 2] each.
struct RotaryTable {
  at::Tensor cosine{};
  at::Tensor sine{};
};

/// How angles are made smaller, for texts longer than those that a model was trained on first.
struct RotaryScaling {
  double factor = 1;  ///< they are divided by it
  /// Not 0: only slow ones are, as Llama 3.1 does. A pair that turns fewer than `low` times in so
  /// many tokens is slow, and one that turns more than `high` times stays as it is. Between the two
  /// it is a mean of both.
  int64_t original_context = 0;
  double low = 1, high = 4;
};

/// Returns the table of position · theta^(-2i / head_width), scaled, rounded from f64.
/// Source: transformers 5.24, modeling_rope_utils.py ("linear" and "llama3").
[[nodiscard]] RotaryTable rotary_table(int64_t context,
                                       int64_t head_width,
                                       double theta,
                                       const RotaryScaling& scaling = {});

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
