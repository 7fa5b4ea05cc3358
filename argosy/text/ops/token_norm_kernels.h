#pragma once

#include <cstdint>

#include "argosy/text/ops/kernel_kinds.h"

// Internal to the room. Rows of `width` values, one after the other.
namespace argosy::text::kernels {

/// What both directions of a norm know of it.
struct NormShape {
  int64_t rows = 0;
  int64_t width = 0;
  bool centered = true;
};

/// sum = x + branch, of the kind of x, unless there is no branch; then the moments of x are taken.
/// normed = (sum - mean) · inverse · weight + bias. Keeps mean and inverse of each row; the mean of
/// a norm that is not centered is 0. `bias` may be null.
void norm_rows(const Source& x,
               const Source& branch,
               const NormShape& shape,
               double epsilon,
               const float* weight,
               const float* bias,
               void* sum,
               const Target& normed,
               float* mean,
               float* inverse);

/// dx = `passed` + the gradient through the norm, of the kind of x; `passed` may be null. Adds the
/// gradients of weight and bias of these rows to `of_weight` and `of_bias`, which may be null.
void norm_rows_gradient(const Source& x,
                        const Source& of_normed,
                        const Source& passed,
                        const NormShape& shape,
                        const float* weight,
                        const float* mean,
                        const float* inverse,
                        void* dx,
                        float* of_weight,
                        float* of_bias);

}  // namespace argosy::text::kernels
