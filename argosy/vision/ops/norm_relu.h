#pragma once

#include <ATen/core/Tensor.h>

#include "argosy/vision/ops/norm.h"

namespace argosy::vision::ops {

/// Returns `norm(images).relu()`, computed with its gradient as one operator. The images pass
/// through memory twice forward and twice backward, instead of once or twice per operator each way.
///
/// Shape: [N, C, H, W] → the same. Running statistics move as in norm(images).
/// Values and gradients are those of the two operators up to rounding: moments are summed in f32 by
/// 64 and in f64 beyond, with the same bits for any number of threads. NaN stays NaN. A second
/// derivative is taken through libtorch's operators.
/// In evaluation mode it is the two operators. So it is for anything but channels_last with a
/// weight and a bias of f32, of images in f32 or bf16 on the CPU, or in f16 too on CUDA. There a
/// block's threads sum in f32 and the blocks are added in f64, always in one order; and it is the
/// two operators for channels that are no whole vectors of 16 bytes, without a momentum, and for
/// statistics over processes.
[[nodiscard]] at::Tensor norm_relu(const Norm& norm, const at::Tensor& images);

/// Returns `(norm(images) + residual).relu()`, computed in the same way.
///
/// Shape of `residual`: that of `images`. With another shape or type it runs as three operators,
/// and the result has the shape and type of `norm(images) + residual`.
[[nodiscard]] at::Tensor norm_add_relu(const Norm& norm,
                                       const at::Tensor& images,
                                       const at::Tensor& residual);

}  // namespace argosy::vision::ops
