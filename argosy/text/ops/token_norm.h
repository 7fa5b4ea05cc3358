#pragma once

#include <ATen/core/Tensor.h>

namespace argosy::text::ops {

/// LayerNorm or RMSNorm over the last dim.
struct TokenNormOptions {
  bool centered = true;  ///< around the mean: LayerNorm; else RMSNorm
  double epsilon = 1e-5;
};

/// The weight, and the bias or an undefined tensor, of a norm over [C].
struct NormWeights {
  at::Tensor weight{};
  at::Tensor bias{};
};

/// Returns the normalized `x`.
///
/// Shape: [..., C] → the same. Under autocast the result has autocast's type, for the product that
/// follows; moments are computed in f32 in any case.
[[nodiscard]] at::Tensor token_norm(const at::Tensor& x,
                                    const NormWeights& weights,
                                    const TokenNormOptions& options);

struct AddedNorm {
  at::Tensor sum{};     ///< x + branch, of the type of x
  at::Tensor normed{};  ///< token_norm() of it
};

/// Returns x + branch and its norm, in one pass each way.
///
/// `branch` has the shape of `x` and may be of a smaller type. If it is undefined the sum is x
/// itself: use AddedNorm::sum and not x from there on, so that the gradients of both uses are added
/// in the norm's own pass.
[[nodiscard]] AddedNorm add_norm(const at::Tensor& x,
                                 const at::Tensor& branch,
                                 const NormWeights& weights,
                                 const TokenNormOptions& options);

}  // namespace argosy::text::ops
