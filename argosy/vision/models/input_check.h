#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <ATen/core/Tensor.h>

namespace argosy::vision {

/// Throws UsageError naming `where` unless `images` is [N, C, H, W] with these C, H and W.
void check_images(const at::Tensor& images,
                  const std::array<int64_t, 3>& chw,
                  std::string_view where);

/// check_images() for [N, 1, 28, 28].
inline void check_gray_28x28(const at::Tensor& images, std::string_view where) {
  check_images(images, {1, 28, 28}, where);
}

/// Gray images with the strides of channels_last; with one channel that is a view. libtorch asks
/// the strides which layout to compute in, and in its default one the pooling and batch norm of
/// small networks cost more than their convolutions.
at::Tensor as_channels_last(const at::Tensor& images_n1hw);

}  // namespace argosy::vision
