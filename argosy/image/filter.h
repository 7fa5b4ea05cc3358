#pragma once

#include "argosy/image/image.h"

namespace argosy::image {

/// Standard deviation of a blur along each axis, in pixels. 0: 0.15 × kernel + 0.35, as in
/// torchvision.
struct Sigma {
  double y = 0;
  double x = 0;
};

/// Each pixel as the mean of those around it by a Gaussian cut to `kernel` rows and columns; beyond
/// the border the image is reflected. All channels alike, alpha too. u8 results are rounded.
/// Within 1 of torchvision (u8; 0.001 of the values differ), 1e-6 (f32 of 0 to 1): it sums the
/// products of both axes in f32, this one axis after the other.
/// Errors: UsageError for an empty image, a kernel that is not odd and positive, one that reaches
/// further than the image does (kernel / 2 ≥ size), a sigma below 0 or not a number.
/// Source: torchvision 0.29, transforms/functional.py gaussian_blur.
[[nodiscard]] Image gaussian_blur(const Image& image, Size kernel, const Sigma& sigma = {});
/// The same of a square kernel.
[[nodiscard]] Image gaussian_blur(const Image& image, int kernel, double sigma = 0);

/// 0: smoothed by (1 1 1; 1 5 1; 1 1 1) / 13, 1: as it is, 2: twice as far from the smooth one. The
/// outermost pixels stay, and so does alpha. u8: Pillow 13's bits. f32 of 0 to 1: torchvision's
/// tensors'. Errors: UsageError for an empty image, a factor below 0 or not a number. Source:
/// Pillow 13, ImageEnhance.Sharpness; torchvision 0.29, adjust_sharpness.
[[nodiscard]] Image adjust_sharpness(const Image& image, double factor);

}  // namespace argosy::image
