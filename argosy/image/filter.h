#pragma once

#include "argosy/image/image.h"

namespace argosy::image {

/// Standard deviation of a blur along each axis, in pixels. 0 means 0.15 × kernel + 0.35, as in
/// torchvision.
struct Sigma {
  double y = 0;
  double x = 0;
};

/// Blurs an image. Each pixel becomes the mean of those around it, weighed by a Gaussian of
/// `kernel` rows and columns. The image is reflected at its border. All channels are treated alike,
/// alpha too. u8 results are rounded. The result is within 1 of torchvision for u8 (0.001 of the
/// values differ), and within 1e-6 for f32 of 0 to 1: torchvision sums the products of both axes in
/// f32, this one axis after the other.
/// Errors: UsageError for an empty image, a kernel that is not odd and positive or reaches beyond
/// the image (kernel / 2 ≥ size), and a sigma that is below 0 or not a number.
/// Source: torchvision 0.29, transforms/functional.py gaussian_blur.
[[nodiscard]] Image gaussian_blur(const Image& image, Size kernel, const Sigma& sigma = {});
/// Blurs with a square kernel.
[[nodiscard]] Image gaussian_blur(const Image& image, int kernel, double sigma = 0);

/// Sharpens or smooths an image. factor 0: smoothed by (1 1 1; 1 5 1; 1 1 1) / 13; 1: unchanged; 2:
/// twice as far from the smooth image. The outermost pixels stay, and so does alpha. u8 equals
/// Pillow 13 bit for bit; f32 of 0 to 1 equals torchvision on tensors.
/// Errors: UsageError for an empty image, and for a factor that is below 0 or not a number.
/// Source: Pillow 13, ImageEnhance.Sharpness; torchvision 0.29, adjust_sharpness.
[[nodiscard]] Image adjust_sharpness(const Image& image, double factor);

}  // namespace argosy::image
