#pragma once

#include <array>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/image/color.h"
#include "argosy/image/filter.h"
#include "argosy/image/geometry.h"
#include "argosy/image/image.h"
#include "argosy/image/resize.h"
#include "argosy/vision/transforms/tensor.h"

/// The transforms as functions, with given numbers instead of random ones.
///
///     namespace F = argosy::vision::functional;
///     image::Image small = F::resize(photo, {.height = 224, .width = 224});
///     at::Tensor turned = F::rotate(chw, 30);
///
/// Functions on images are in argosy/image/. Functions on tensors take [C, H, W] of u8 or f32 on
/// the CPU and give the same numbers; one channel counts as gray, three as RGB, four as RGBA. If
/// the channels are something else and it matters, use an Image or a Picture. The functions of
/// argosy/image/geometry.h move points.
/// Errors: UsageError for a tensor of another shape or type; otherwise those of the function on
/// images.
namespace argosy::vision::functional {

using image::adjust_brightness;
using image::adjust_contrast;
using image::adjust_gamma;
using image::adjust_hue;
using image::adjust_saturation;
using image::adjust_sharpness;
using image::affine;
using image::autocontrast;
using image::center_crop;
using image::convert;
using image::crop;
using image::equalize;
using image::erase;
using image::flip_horizontally;
using image::flip_vertically;
using image::gaussian_blur;
using image::invert;
using image::pad;
using image::perspective;
using image::posterize;
using image::resize;
using image::rotate;
using image::solarize;
using image::to_grayscale;

[[nodiscard]] at::Tensor resize(const at::Tensor& chw,
                                image::Size size,
                                const image::ResizeOptions& options = {});
[[nodiscard]] at::Tensor crop(const at::Tensor& chw, const image::Box& box);
[[nodiscard]] at::Tensor center_crop(const at::Tensor& chw, image::Size size);
[[nodiscard]] at::Tensor flip_horizontally(const at::Tensor& chw);
[[nodiscard]] at::Tensor flip_vertically(const at::Tensor& chw);
[[nodiscard]] at::Tensor pad(const at::Tensor& chw,
                             const image::Padding& padding,
                             const image::PadOptions& options = {});
[[nodiscard]] at::Tensor rotate(const at::Tensor& chw,
                                double degrees,
                                const image::RotateOptions& options = {});
[[nodiscard]] at::Tensor affine(const at::Tensor& chw, const image::AffineOptions& options);
[[nodiscard]] at::Tensor perspective(const at::Tensor& chw,
                                     const std::array<image::PointF, 4>& from,
                                     const std::array<image::PointF, 4>& to,
                                     const image::WarpOptions& options = {});
[[nodiscard]] at::Tensor erase(const at::Tensor& chw,
                               const image::Box& box,
                               const image::Fill& fill = {});

[[nodiscard]] at::Tensor adjust_brightness(const at::Tensor& chw, double factor);
[[nodiscard]] at::Tensor adjust_contrast(const at::Tensor& chw, double factor);
[[nodiscard]] at::Tensor adjust_saturation(const at::Tensor& chw, double factor);
[[nodiscard]] at::Tensor adjust_hue(const at::Tensor& chw, double shift);
[[nodiscard]] at::Tensor adjust_gamma(const at::Tensor& chw, double gamma, double gain = 1);
[[nodiscard]] at::Tensor to_grayscale(const at::Tensor& chw, int channels = 1);
[[nodiscard]] at::Tensor gaussian_blur(const at::Tensor& chw, int kernel, double sigma);

[[nodiscard]] at::Tensor invert(const at::Tensor& chw);
[[nodiscard]] at::Tensor posterize(const at::Tensor& chw, int bits);
[[nodiscard]] at::Tensor solarize(const at::Tensor& chw, double threshold);
[[nodiscard]] at::Tensor autocontrast(const at::Tensor& chw);
[[nodiscard]] at::Tensor equalize(const at::Tensor& chw);
[[nodiscard]] at::Tensor adjust_sharpness(const at::Tensor& chw, double factor);

/// Returns f32 [C, H, W], as ToTensor does: u8 divided by 255, f32 unchanged.
[[nodiscard]] at::Tensor to_tensor(const image::Image& image);
[[nodiscard]] at::Tensor to_tensor(const at::Tensor& chw);
/// Returns (value - mean) / std for each channel, as Normalize does.
[[nodiscard]] image::Image normalize(const image::Image& image,
                                     const std::vector<double>& mean,
                                     const std::vector<double>& std,
                                     const NormalizeOptions& options = {});
[[nodiscard]] at::Tensor normalize(const at::Tensor& chw,
                                   const std::vector<double>& mean,
                                   const std::vector<double>& std,
                                   const NormalizeOptions& options = {});

}  // namespace argosy::vision::functional
