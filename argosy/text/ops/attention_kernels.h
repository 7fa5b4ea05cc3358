#pragma once

#include <cstdint>

#include "argosy/text/ops/kernel_kinds.h"

// Internal to the room. Scores of one head: `queries` rows of `keys` values. Query i sees the keys
// 0 to first + i.
namespace argosy::text::kernels {

struct ScoreShape {
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t first = 0;
  float scale = 1;  ///< of the scores
};

/// Replaces scores by the weights of their softmax; keys that are not seen get 0. Keeps of each row
/// the logarithm of the sum of exponentials.
void causal_softmax(const Target& scores, const ScoreShape& shape, float* log_sum);

/// Replaces scores by the same weights again, from the kept logarithms, and the gradients of the
/// weights by those of the scores. `product` of a row: its output times the output's gradient.
void causal_softmax_gradient(const Target& scores,
                             const Target& of_weights,
                             const ScoreShape& shape,
                             const float* log_sum,
                             const float* product);

/// products[row · heads + head] = x · y of each of `heads` heads of `width` values of a row.
void head_products(
    const Source& x, const Source& y, int64_t rows, int64_t heads, int64_t width, float* products);

/// Heads of a row of `row_width` values, of which the first `rotated` are rotated.
struct RotationShape {
  int64_t rows = 0;
  int64_t row_width = 0;
  int64_t rotated = 0;
  int64_t half = 0;  ///< half of a head's values
  bool back = false;
};

/// y = x with rotated heads; of one kind. cosine and sine: `half` values for each row.
void rotate_rows(
    const Source& x, const RotationShape& shape, const float* cosine, const float* sine, void* y);

}  // namespace argosy::text::kernels
