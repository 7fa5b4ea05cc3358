#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

// Internal to the room: a convolution of which some parts are products of matrices.
namespace argosy::vision::ops {

/// What libtorch's convolution takes besides tensors.
struct ConvolutionGeometry {
  std::vector<int64_t> stride{};
  std::vector<int64_t> padding{};
};

/// What is computed as a product of matrices; the rest is libtorch's convolution.
struct ProductWays {
  bool result = false;
  bool of_weight = false;  ///< its gradient, likewise below
  bool of_images = false;
};

/// Returns the pixels of a result, [H', W']; 0 where the images are smaller than the kernel.
[[nodiscard]] std::vector<int64_t> pixels_out(const at::Tensor& images,
                                              const at::Tensor& weight,
                                              const ConvolutionGeometry& geometry);

/// Shape: images [N, C, H, W] in channels_last, weight [O, C, kernel], bias [O] or undefined → [N,
/// O, H', W'] in channels_last. All of one type. Windows of the images are copied beside each
/// other. In bf16 libtorch adds up products of 16³ multiplications and fewer in bf16.
[[nodiscard]] at::Tensor product_convolution(const at::Tensor& images,
                                             const at::Tensor& weight,
                                             const at::Tensor& bias,
                                             const ConvolutionGeometry& geometry,
                                             const ProductWays& ways);

}  // namespace argosy::vision::ops
