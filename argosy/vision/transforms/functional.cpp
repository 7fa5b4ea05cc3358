#include "argosy/vision/transforms/functional.h"

#include "argosy/vision/transforms/on_pixels.h"
#include "argosy/vision/transforms/picture.h"

namespace argosy::vision::functional {
namespace {

using image::Image;

/// f on a tensor as an image.
template <typename F>
at::Tensor on_tensor(const at::Tensor& chw, const F& f) {
  return detail::on_pixels(Picture(chw), "vision.functional", f).tensor().chw;
}

}  // namespace

at::Tensor resize(const at::Tensor& chw, image::Size size, const image::ResizeOptions& options) {
  return on_tensor(chw, [&](const Image& image) { return resize(image, size, options); });
}

at::Tensor crop(const at::Tensor& chw, const image::Box& box) {
  return on_tensor(chw, [&](const Image& image) { return crop(image, box); });
}

at::Tensor center_crop(const at::Tensor& chw, image::Size size) {
  return on_tensor(chw, [&](const Image& image) { return center_crop(image, size); });
}

at::Tensor flip_horizontally(const at::Tensor& chw) {
  return on_tensor(chw, [](const Image& image) { return flip_horizontally(image); });
}

at::Tensor flip_vertically(const at::Tensor& chw) {
  return on_tensor(chw, [](const Image& image) { return flip_vertically(image); });
}

at::Tensor pad(const at::Tensor& chw,
               const image::Padding& padding,
               const image::PadOptions& options) {
  return on_tensor(chw, [&](const Image& image) { return pad(image, padding, options); });
}

at::Tensor rotate(const at::Tensor& chw, double degrees, const image::RotateOptions& options) {
  return on_tensor(chw, [&](const Image& image) { return rotate(image, degrees, options); });
}

at::Tensor affine(const at::Tensor& chw, const image::AffineOptions& options) {
  return on_tensor(chw, [&](const Image& image) { return affine(image, options); });
}

at::Tensor perspective(const at::Tensor& chw,
                       const std::array<image::PointF, 4>& from,
                       const std::array<image::PointF, 4>& to,
                       const image::WarpOptions& options) {
  return on_tensor(chw, [&](const Image& image) { return perspective(image, from, to, options); });
}

at::Tensor erase(const at::Tensor& chw, const image::Box& box, const image::Fill& fill) {
  return on_tensor(chw, [&](const Image& image) { return erase(image, box, fill); });
}

at::Tensor adjust_brightness(const at::Tensor& chw, double factor) {
  return on_tensor(chw, [&](const Image& image) { return adjust_brightness(image, factor); });
}

at::Tensor adjust_contrast(const at::Tensor& chw, double factor) {
  return on_tensor(chw, [&](const Image& image) { return adjust_contrast(image, factor); });
}

at::Tensor adjust_saturation(const at::Tensor& chw, double factor) {
  return on_tensor(chw, [&](const Image& image) { return adjust_saturation(image, factor); });
}

at::Tensor adjust_hue(const at::Tensor& chw, double shift) {
  return on_tensor(chw, [&](const Image& image) { return adjust_hue(image, shift); });
}

at::Tensor adjust_gamma(const at::Tensor& chw, double gamma, double gain) {
  return on_tensor(chw, [&](const Image& image) { return adjust_gamma(image, gamma, gain); });
}

at::Tensor to_grayscale(const at::Tensor& chw, int channels) {
  return on_tensor(chw, [&](const Image& image) { return to_grayscale(image, channels); });
}

at::Tensor gaussian_blur(const at::Tensor& chw, int kernel, double sigma) {
  return on_tensor(chw, [&](const Image& image) { return gaussian_blur(image, kernel, sigma); });
}

at::Tensor invert(const at::Tensor& chw) {
  return on_tensor(chw, [](const Image& image) { return invert(image); });
}

at::Tensor posterize(const at::Tensor& chw, int bits) {
  return on_tensor(chw, [&](const Image& image) { return posterize(image, bits); });
}

at::Tensor solarize(const at::Tensor& chw, double threshold) {
  return on_tensor(chw, [&](const Image& image) { return solarize(image, threshold); });
}

at::Tensor autocontrast(const at::Tensor& chw) {
  return on_tensor(chw, [](const Image& image) { return autocontrast(image); });
}

at::Tensor equalize(const at::Tensor& chw) {
  return on_tensor(chw, [](const Image& image) { return equalize(image); });
}

at::Tensor adjust_sharpness(const at::Tensor& chw, double factor) {
  return on_tensor(chw, [&](const Image& image) { return adjust_sharpness(image, factor); });
}

at::Tensor to_tensor(const Image& image) {
  return ToTensor()(image).tensor().chw;
}

at::Tensor to_tensor(const at::Tensor& chw) {
  return ToTensor()(chw).tensor().chw;
}

Image normalize(const Image& image,
                const std::vector<double>& mean,
                const std::vector<double>& std,
                const NormalizeOptions& options) {
  return Normalize(mean, std, options)(image).image();
}

at::Tensor normalize(const at::Tensor& chw,
                     const std::vector<double>& mean,
                     const std::vector<double>& std,
                     const NormalizeOptions& options) {
  return Normalize(mean, std, options)(chw).tensor().chw;
}

}  // namespace argosy::vision::functional
