#pragma once

#include <ATen/core/Tensor.h>

#include "argosy/vision/ops/norm.h"

namespace argosy::vision::ops {

/// `norm(images).relu()` as one operator, and its gradient: images pass through memory twice
/// forward and twice backward, in place of once or twice for each operator each way.
///
/// Shape: [N, C, H, W] → the same. Running statistics move as in norm(images). Values and gradients
/// are those of the two operators up to rounding: moments are summed in f32 by 64 and in f64
/// beyond; the same bits with any number of threads. NaN stays NaN. A second derivative is taken
/// through libtorch's operators.
/// In evaluation mode, and for anything but f32 on the CPU in channels_last with a weight and a
/// bias, it is the two operators.
[[nodiscard]] at::Tensor norm_relu(const Norm& norm, const at::Tensor& images);

/// `(norm(images) + residual).relu()`, in the same way.
///
/// Shape of `residual`: that of `images`; another shape or type, by three operators, makes that of
/// the result what it is for `norm(images) + residual`.
[[nodiscard]] at::Tensor norm_add_relu(const Norm& norm,
                                       const at::Tensor& images,
                                       const at::Tensor& residual);

}  // namespace argosy::vision::ops
