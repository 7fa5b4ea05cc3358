#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/conv.h>

namespace argosy::vision::ops {

/// Returns `conv(images)`. Convolutions to few pixels are computed as products of matrices where
/// that is faster, for oneDNN's kernels take up to twice as long there in f32 and up to ten times
/// as long in bf16 (under engine::Autocast):
///
/// | pixels an image of the result | result, f32 and bf16 | gradient of the weight | of the images
/// | | at most 16 | product | product | product; in f32 from libtorch 2 on | | at most 49 | if the
/// kernel is 1×1 | bf16; f32 if 1×1 | bf16, if 1×1 or strided |
///
/// Shape: [N, C, H, W] → [N, O, H', W'].
/// Which way is taken follows from shapes, types and the processor's instructions (AVX-512 for f32,
/// AMX for bf16), never from a measurement or the number of threads. Both add up in f32 and round
/// once. A second derivative is taken through libtorch's operators. Groups, dilation, padding with
/// other than zeros or by a word ("same"), and images that are not channels_last on the CPU are
/// conv(images)'s.
[[nodiscard]] at::Tensor convolution(torch::nn::Conv2d& conv, const at::Tensor& images);

}  // namespace argosy::vision::ops
