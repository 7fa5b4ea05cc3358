#pragma once

#include <ATen/core/Tensor.h>

#include "argosy/vision/ops/norm.h"

namespace argosy::vision::ops {

/// Returns `max_pool2d(norm(images), 2).relu()`, computed with its gradient as one operator. The
/// images pass through memory twice forward and twice backward. Three separate operators would each
/// move a tensor of that size, each way.
///
/// Shape: [N, C, H, W] → [N, C, ⌊H/2⌋, ⌊W/2⌋]. Running statistics move as in norm(images).
/// Values and gradients are those of the three operators up to rounding: moments are summed in f32
/// by 64 and in f64 beyond, with the same bits for any number of threads. Of equal values in a
/// window the first counts; NaN stays NaN. A second derivative is taken through the three
/// operators.
/// In evaluation mode it is the three operators. So it is for anything but images of f32 or bf16 on
/// the CPU in channels_last with a weight and a bias of f32.
[[nodiscard]] at::Tensor norm_pool_relu(const Norm& norm, const at::Tensor& images);

}  // namespace argosy::vision::ops
