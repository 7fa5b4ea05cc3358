#include "argosy/vision/transforms/color.h"

#include <array>
#include <limits>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/image/color.h"
#include "argosy/vision/transforms/description.h"
#include "argosy/vision/transforms/on_pixels.h"

namespace argosy::vision {
namespace {

using detail::Description;
using detail::on_pixels;
using image::Image;

constexpr Range kFactors{0, std::numeric_limits<double>::max()};
constexpr Range kHues{-0.5, 0.5};
constexpr Range kOne{1, 1};
constexpr Range kZero{0, 0};

using Adjust = Image (*)(const Image&, double);

/// adjust() with a number from the range, unless that changes nothing.
Picture jitter(Picture picture,
               std::string_view where,
               const Range& range,
               const Range& nothing,
               Adjust adjust,
               data::Random& random) {
  if (range == nothing) {
    return picture;
  }
  const double factor = range.draw(random);
  return on_pixels(
      std::move(picture), where, [&](const Image& image) { return adjust(image, factor); });
}

// Overloads have no address: these name the ones meant.
Image brightness(const Image& image, double factor) {
  return image::adjust_brightness(image, factor);
}
Image contrast(const Image& image, double factor) {
  return image::adjust_contrast(image, factor);
}
Image saturation(const Image& image, double factor) {
  return image::adjust_saturation(image, factor);
}
Image hue(const Image& image, double shift) {
  return image::adjust_hue(image, shift);
}

}  // namespace

BrightnessTransform::BrightnessTransform(const Spread& value)
    : factor_(value.range("vision.BrightnessTransform", "value", 1, kFactors)) {}
Picture BrightnessTransform::operator()(Picture picture, data::Random& random) const {
  return jitter(
      std::move(picture), "vision.BrightnessTransform", factor_, kOne, brightness, random);
}
std::string BrightnessTransform::to_string() const {
  return Description(kName).argument(factor_).done();
}

ContrastTransform::ContrastTransform(const Spread& value)
    : factor_(value.range("vision.ContrastTransform", "value", 1, kFactors)) {}
Picture ContrastTransform::operator()(Picture picture, data::Random& random) const {
  return jitter(std::move(picture), "vision.ContrastTransform", factor_, kOne, contrast, random);
}
std::string ContrastTransform::to_string() const {
  return Description(kName).argument(factor_).done();
}

SaturationTransform::SaturationTransform(const Spread& value)
    : factor_(value.range("vision.SaturationTransform", "value", 1, kFactors)) {}
Picture SaturationTransform::operator()(Picture picture, data::Random& random) const {
  return jitter(
      std::move(picture), "vision.SaturationTransform", factor_, kOne, saturation, random);
}
std::string SaturationTransform::to_string() const {
  return Description(kName).argument(factor_).done();
}

HueTransform::HueTransform(const Spread& value)
    : shift_(value.range("vision.HueTransform", "value", 0, kHues)) {}
Picture HueTransform::operator()(Picture picture, data::Random& random) const {
  return jitter(std::move(picture), "vision.HueTransform", shift_, kZero, hue, random);
}
std::string HueTransform::to_string() const {
  return Description(kName).argument(shift_).done();
}

ColorJitter::ColorJitter(const ColorJitterOptions& options)
    : brightness_(options.brightness.range("vision.ColorJitter", "brightness", 1, kFactors)),
      contrast_(options.contrast.range("vision.ColorJitter", "contrast", 1, kFactors)),
      saturation_(options.saturation.range("vision.ColorJitter", "saturation", 1, kFactors)),
      hue_(options.hue.range("vision.ColorJitter", "hue", 0, kHues)) {}

Picture ColorJitter::operator()(Picture picture, data::Random& random) const {
  struct Part {
    Range range;
    Range nothing;
    Adjust adjust;
    double factor = 0;
  };
  std::array<Part, 4> parts{{{brightness_, kOne, brightness},
                             {contrast_, kOne, contrast},
                             {saturation_, kOne, saturation},
                             {hue_, kZero, hue}}};
  std::array<size_t, 4> order{0, 1, 2, 3};
  for (size_t i = order.size() - 1; i > 0; --i) {
    std::swap(order[i], order[static_cast<size_t>(random.integer(0, static_cast<int64_t>(i)))]);
  }
  bool any = false;
  for (Part& part : parts) {
    if (part.range != part.nothing) {
      part.factor = part.range.draw(random);
      any = true;
    }
  }
  if (!any) {
    return picture;
  }
  return on_pixels(std::move(picture), "vision.ColorJitter", [&](Image image) {
    for (const size_t i : order) {
      if (parts[i].range != parts[i].nothing) {
        image = parts[i].adjust(image, parts[i].factor);
      }
    }
    return image;
  });
}

std::string ColorJitter::to_string() const {
  return Description(kName)
      .option("brightness", brightness_, kOne)
      .option("contrast", contrast_, kOne)
      .option("saturation", saturation_, kOne)
      .option("hue", hue_, kZero)
      .done();
}

Grayscale::Grayscale(int channels) : channels_(channels) {
  ARGOSY_CHECK(channels == 1 || channels == 3,
               "vision.Grayscale",
               "expected 1 or 3 channels, got {}",
               channels);
}
Picture Grayscale::operator()(Picture picture) const {
  return on_pixels(std::move(picture), "vision.Grayscale", [&](const Image& image) {
    return image::to_grayscale(image, channels_);
  });
}
std::string Grayscale::to_string() const {
  return Description(kName).option("channels", channels_, 1).done();
}

RandomGrayscale::RandomGrayscale(double p) : p_(p) {
  detail::check_probability("vision.RandomGrayscale", "p", p);
}
Picture RandomGrayscale::operator()(Picture picture, data::Random& random) const {
  if (!random.bernoulli(p_) || picture.order() == image::Order::kGray) {
    return picture;
  }
  ARGOSY_CHECK(picture.order() != image::Order::kRgba,
               "vision.RandomGrayscale",
               "expected gray, RGB or BGR, got {}. Put ConvertOrder() before it.",
               picture.describe());
  return on_pixels(std::move(picture), "vision.RandomGrayscale", [](const Image& image) {
    return image::to_grayscale(image, 3);
  });
}
std::string RandomGrayscale::to_string() const {
  return Description(kName).option("p", p_, 0.1).done();
}

Repeat::Repeat(int channels) : channels_(channels) {
  ARGOSY_CHECK(channels == 1 || channels == 3,
               "vision.Repeat",
               "expected 1 or 3 channels, got {}",
               channels);
}
Picture Repeat::operator()(Picture picture) const {
  ARGOSY_CHECK(picture.order() == image::Order::kGray,
               "vision.Repeat",
               "expected one gray channel, got {}. Leave it out, or put Grayscale() before it.",
               picture.describe());
  if (channels_ == 1) {
    return picture;
  }
  return on_pixels(std::move(picture), "vision.Repeat", [](const Image& image) {
    return image::convert(image, image::Order::kRgb);
  });
}
std::string Repeat::to_string() const {
  return Description(kName).argument(channels_).done();
}

Picture ConvertOrder::operator()(Picture picture) const {
  if (picture.order() == order_) {
    return picture;
  }
  return on_pixels(std::move(picture), "vision.ConvertOrder", [&](const Image& image) {
    return image::convert(image, order_);
  });
}
std::string ConvertOrder::to_string() const {
  return Description(kName).argument(image::to_string(order_)).done();
}

}  // namespace argosy::vision
