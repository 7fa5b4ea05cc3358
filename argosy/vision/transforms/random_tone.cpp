#include "argosy/vision/transforms/random_tone.h"

#include <limits>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/image/color.h"
#include "argosy/image/filter.h"
#include "argosy/vision/transforms/description.h"
#include "argosy/vision/transforms/on_pixels.h"

namespace argosy::vision {
namespace {

using detail::Description;
using image::Image;

void check_bytes(const Picture& picture, std::string_view where) {
  const bool bytes = picture.is_image() ? picture.image().type() == image::Type::kU8
                                        : picture.tensor().chw.scalar_type() == at::kByte;
  ARGOSY_CHECK(bytes,
               where,
               "expected u8, got {}. Put it before ToTensor() and Normalize().",
               picture.describe());
}

/// f(image) with probability p.
template <typename F>
Picture perhaps(
    double p, Picture picture, data::Random& random, std::string_view where, const F& f) {
  return random.bernoulli(p) ? detail::on_pixels(std::move(picture), where, f) : picture;
}

}  // namespace

RandomInvert::RandomInvert(double p) : p_(p) {
  detail::check_probability("vision.RandomInvert", "p", p);
}
Picture RandomInvert::operator()(Picture picture, data::Random& random) const {
  return perhaps(p_, std::move(picture), random, "vision.RandomInvert", [&](const Image& image) {
    return image::invert(image);
  });
}
std::string RandomInvert::to_string() const {
  return Description(kName).option("p", p_, 0.5).done();
}

RandomPosterize::RandomPosterize(int bits, double p) : bits_(bits), p_(p) {
  ARGOSY_CHECK(
      bits >= 1 && bits <= 8, "vision.RandomPosterize", "bits must be from 1 to 8, got {}", bits);
  detail::check_probability("vision.RandomPosterize", "p", p);
}
Picture RandomPosterize::operator()(Picture picture, data::Random& random) const {
  check_bytes(picture, "vision.RandomPosterize");
  return perhaps(p_, std::move(picture), random, "vision.RandomPosterize", [&](const Image& image) {
    return image::posterize(image, bits_);
  });
}
std::string RandomPosterize::to_string() const {
  return Description(kName).argument(bits_).option("p", p_, 0.5).done();
}

RandomSolarize::RandomSolarize(double threshold, double p) : threshold_(threshold), p_(p) {
  detail::check_number("vision.RandomSolarize", "threshold", threshold, {0, 255});
  detail::check_probability("vision.RandomSolarize", "p", p);
}
Picture RandomSolarize::operator()(Picture picture, data::Random& random) const {
  return perhaps(p_, std::move(picture), random, "vision.RandomSolarize", [&](const Image& image) {
    return image::solarize(image, threshold_);
  });
}
std::string RandomSolarize::to_string() const {
  return Description(kName).argument(threshold_).option("p", p_, 0.5).done();
}

RandomAutocontrast::RandomAutocontrast(double p) : p_(p) {
  detail::check_probability("vision.RandomAutocontrast", "p", p);
}
Picture RandomAutocontrast::operator()(Picture picture, data::Random& random) const {
  return perhaps(
      p_, std::move(picture), random, "vision.RandomAutocontrast", [&](const Image& image) {
        return image::autocontrast(image);
      });
}
std::string RandomAutocontrast::to_string() const {
  return Description(kName).option("p", p_, 0.5).done();
}

RandomEqualize::RandomEqualize(double p) : p_(p) {
  detail::check_probability("vision.RandomEqualize", "p", p);
}
Picture RandomEqualize::operator()(Picture picture, data::Random& random) const {
  check_bytes(picture, "vision.RandomEqualize");
  return perhaps(p_, std::move(picture), random, "vision.RandomEqualize", [&](const Image& image) {
    return image::equalize(image);
  });
}
std::string RandomEqualize::to_string() const {
  return Description(kName).option("p", p_, 0.5).done();
}

RandomAdjustSharpness::RandomAdjustSharpness(double factor, double p) : factor_(factor), p_(p) {
  detail::check_number(
      "vision.RandomAdjustSharpness", "factor", factor, {0, std::numeric_limits<double>::max()});
  detail::check_probability("vision.RandomAdjustSharpness", "p", p);
}
Picture RandomAdjustSharpness::operator()(Picture picture, data::Random& random) const {
  return perhaps(
      p_, std::move(picture), random, "vision.RandomAdjustSharpness", [&](const Image& image) {
        return image::adjust_sharpness(image, factor_);
      });
}
std::string RandomAdjustSharpness::to_string() const {
  return Description(kName).argument(factor_).option("p", p_, 0.5).done();
}

GaussianBlur::GaussianBlur(int kernel, const Range& sigma) : kernel_(kernel), sigma_(sigma) {
  ARGOSY_CHECK(kernel > 0 && kernel % 2 == 1,
               "vision.GaussianBlur",
               "the kernel must be odd and positive, got {}",
               kernel);
  detail::check_range("vision.GaussianBlur",
                      "sigma",
                      sigma,
                      {std::numeric_limits<double>::min(), std::numeric_limits<double>::max()});
}
Picture GaussianBlur::operator()(Picture picture, data::Random& random) const {
  const double sigma = sigma_.draw(random);
  return detail::on_pixels(std::move(picture), "vision.GaussianBlur", [&](const Image& image) {
    return image::gaussian_blur(image, kernel_, sigma);
  });
}
std::string GaussianBlur::to_string() const {
  return Description(kName).argument(kernel_).option("sigma", sigma_, {0.1, 2.0}).done();
}

}  // namespace argosy::vision
