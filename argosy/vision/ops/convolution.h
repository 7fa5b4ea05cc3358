#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/conv.h>

namespace argosy::vision::ops {

/// Returns `conv(images)`. In training, convolutions to few pixels are computed as products of
/// matrices where that is faster: oneDNN's kernels are made for many pixels.
///
/// - To at most 16 pixels an image: the result, the gradient of the weight, and that of the images
///   (in f32 from libtorch 2.1 on).
/// - To at most 49 pixels: with a kernel of 1×1 the result and the weight's gradient, and in bf16
///   (under engine::Autocast) the weight's gradient with any kernel, and that of the images with
///   1×1 or with a stride.
///
/// Shape: [N, C, H, W] → [N, O, H', W'].
/// Cost: the images' windows are copied, up to nine times the images, and dropped.
/// Which way is taken follows from shapes, types and engine::fast_products(), never from a
/// measurement or the number of threads. Both add up in f32 and round once, where libtorch may not
/// round products of f32 (set_float32_matmul_precision). A second derivative is taken through
/// libtorch's operators. It is conv(images) in evaluation mode, for products of fewer than 2¹⁵
/// multiplications for each tap of the kernel, for larger windows, and with groups, dilation,
/// padding with other than zeros or by a word ("same"), and images that are not channels_last on
/// the CPU.
[[nodiscard]] at::Tensor convolution(torch::nn::Conv2d& conv, const at::Tensor& images);

}  // namespace argosy::vision::ops
