#include "argosy/vision/transforms/crop.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/vision/transforms/description.h"
#include "argosy/vision/transforms/on_pixels.h"

namespace argosy::vision {
namespace {

using detail::Description;
using detail::on_pixels;
using image::Box;
using image::Image;
using image::Size;

void check_size(std::string_view where, Size size) {
  ARGOSY_CHECK(size.height > 0 && size.width > 0,
               where,
               "expected a size of at least 1 x 1, got {} x {}",
               size.height,
               size.width);
  ARGOSY_CHECK(int64_t{size.height} * size.width <= Image::kMostPixels,
               where,
               "expected a size of at most {} pixels, got {} x {}",
               Image::kMostPixels,
               size.height,
               size.width);
}

void check_padding(std::string_view where, const image::Padding& padding) {
  for (const int border : {padding.left, padding.top, padding.right, padding.bottom}) {
    ARGOSY_CHECK(border >= 0 && border <= Image::kMostPixels,
                 where,
                 "a border must be from 0 to {} pixels, got {}",
                 Image::kMostPixels,
                 border);
  }
}

Size padded(Size size, const image::Padding& padding) {
  return {.height = size.height + padding.top + padding.bottom,
          .width = size.width + padding.left + padding.right};
}

bool is_none(const image::Padding& padding) {
  return padding == image::Padding{};
}

int half_even(double value) {
  return static_cast<int>(std::nearbyint(value));
}

Picture crop(Picture picture, std::string_view where, const Box& box) {
  picture.map_points(image::crop_map(box));
  return on_pixels(
      std::move(picture), where, [&](const Image& image) { return image::crop(image, box); });
}

Picture pad(Picture picture,
            std::string_view where,
            const image::Padding& padding,
            const image::PadOptions& options) {
  if (is_none(padding)) {
    return picture;
  }
  picture.map_points(image::pad_map(padding));
  return on_pixels(std::move(picture), where, [&](const Image& image) {
    return image::pad(image, padding, options);
  });
}

Picture resize(Picture picture,
               std::string_view where,
               Size size,
               const image::ResizeOptions& options) {
  picture.map_points(image::resize_map(picture.size(), size));
  return on_pixels(std::move(picture), where, [&](const Image& image) {
    return image::resize(image, size, options);
  });
}

}  // namespace

Resize::Resize(int shorter_edge, const ResizeOptions& options)
    : shorter_edge_(shorter_edge), options_(options) {
  ARGOSY_CHECK(
      shorter_edge > 0, "vision.Resize", "the edge must be at least 1, got {}", shorter_edge);
  ARGOSY_CHECK(options.max_size == 0 || options.max_size > shorter_edge,
               "vision.Resize",
               "option max_size must be above the shorter edge of {}, got {}",
               shorter_edge,
               options.max_size);
}

Resize::Resize(Size size, const ResizeOptions& options) : size_(size), options_(options) {
  check_size("vision.Resize", size);
  ARGOSY_CHECK(options.max_size == 0,
               "vision.Resize",
               "option max_size goes with the shorter edge alone, got both edges and {}",
               options.max_size);
}

Size Resize::target(Size source) const {
  if (shorter_edge_ == 0) {
    return size_;
  }
  const int64_t shorter = std::min(source.height, source.width);
  const int64_t longer = std::max(source.height, source.width);
  int64_t to_shorter = shorter_edge_;
  int64_t to_longer = to_shorter * longer / shorter;
  if (options_.max_size > 0 && to_longer > options_.max_size) {
    to_shorter = std::max<int64_t>(1, options_.max_size * to_shorter / to_longer);
    to_longer = options_.max_size;
  }
  ARGOSY_CHECK(to_longer <= Image::kMostPixels,
               "vision.Resize",
               "a picture of {} x {} would become {} pixels long. Set .max_size.",
               source.height,
               source.width,
               to_longer);
  const auto a = static_cast<int>(to_shorter);
  const auto b = static_cast<int>(to_longer);
  return source.width <= source.height ? Size{b, a} : Size{a, b};
}

Picture Resize::operator()(Picture picture) const {
  const Size size = target(picture.size());
  return resize(
      std::move(picture), "vision.Resize", size, {options_.interpolation, options_.antialias});
}

std::string Resize::to_string() const {
  const ResizeOptions usual;
  Description text(kName);
  if (shorter_edge_ > 0) {
    text.argument(shorter_edge_);
  } else {  // both edges even where they are equal: one would mean the shorter
    text.argument(fmt::format("{{{}, {}}}", size_.height, size_.width));
  }
  return text.option("interpolation", options_.interpolation, usual.interpolation)
      .option("antialias", options_.antialias, usual.antialias)
      .option("max_size", options_.max_size, usual.max_size)
      .done();
}

CenterCrop::CenterCrop(Size size) : size_(size) {
  check_size("vision.CenterCrop", size);
}

Box CenterCrop::box(Size source) const {
  return image::center_box(source, size_);
}

Picture CenterCrop::operator()(Picture picture) const {
  picture.map_points(image::center_crop_map(picture.size(), size_));
  return on_pixels(std::move(picture), "vision.CenterCrop", [&](const Image& image) {
    return image::center_crop(image, size_);
  });
}

std::string CenterCrop::to_string() const {
  return Description(kName).argument(size_).done();
}

Pad::Pad(const image::Padding& padding, const image::PadOptions& options)
    : padding_(padding), options_(options) {
  check_padding("vision.Pad", padding);
}

Picture Pad::operator()(Picture picture) const {
  return pad(std::move(picture), "vision.Pad", padding_, options_);
}

std::string Pad::to_string() const {
  const image::PadOptions usual;
  return Description(kName)
      .argument(padding_)
      .option("mode", options_.mode, usual.mode)
      .option("fill", options_.fill, usual.fill)
      .done();
}

RandomCrop::RandomCrop(Size size, const RandomCropOptions& options)
    : size_(size), options_(options) {
  check_size("vision.RandomCrop", size);
  check_padding("vision.RandomCrop", options.padding);
}

RandomCrop::Draw RandomCrop::draw(Size source, data::Random& random) const {
  Size size = padded(source, options_.padding);
  Draw draw{.needed = {}, .box = {.height = size_.height, .width = size_.width}};
  if (options_.pad_if_needed) {
    draw.needed.left = draw.needed.right = std::max(0, size_.width - size.width);
    draw.needed.top = draw.needed.bottom = std::max(0, size_.height - size.height);
    size = padded(size, draw.needed);
  }
  ARGOSY_CHECK(size.height >= size_.height && size.width >= size_.width,
               "vision.RandomCrop",
               "expected a picture of at least {} x {}, got {} x {}. Set .pad_if_needed, or put "
               "Resize() before it.",
               size_.height,
               size_.width,
               size.height,
               size.width);
  if (size != size_) {
    draw.box.top = static_cast<int>(random.integer(0, size.height - size_.height));
    draw.box.left = static_cast<int>(random.integer(0, size.width - size_.width));
  }
  return draw;
}

Picture RandomCrop::operator()(Picture picture, data::Random& random) const {
  constexpr std::string_view kWhere = "vision.RandomCrop";
  const Draw draw = this->draw(picture.size(), random);
  const image::PadOptions border{options_.mode, options_.fill};
  picture = pad(std::move(picture), kWhere, options_.padding, border);
  picture = pad(std::move(picture), kWhere, draw.needed, border);
  return crop(std::move(picture), kWhere, draw.box);
}

std::string RandomCrop::to_string() const {
  const RandomCropOptions usual;
  return Description(kName)
      .argument(size_)
      .option("padding", options_.padding, usual.padding)
      .option("pad_if_needed", options_.pad_if_needed, usual.pad_if_needed)
      .option("mode", options_.mode, usual.mode)
      .option("fill", options_.fill, usual.fill)
      .done();
}

RandomResizedCrop::RandomResizedCrop(Size size, const RandomResizedCropOptions& options)
    : size_(size), options_(options) {
  constexpr std::string_view kWhere = "vision.RandomResizedCrop";
  constexpr double kLeast = std::numeric_limits<double>::min();
  check_size(kWhere, size);
  detail::check_range(kWhere, "scale", options.scale, {0, 1});
  detail::check_range(kWhere, "ratio", options.ratio, {kLeast, std::numeric_limits<double>::max()});
}

Box RandomResizedCrop::draw(Size source, data::Random& random) const {
  const double area = static_cast<double>(source.height) * source.width;
  const Range& ratios = options_.ratio;
  const Range log_ratio{std::log(ratios.low), std::log(ratios.high)};
  for (int tries = 0; tries < 10; ++tries) {
    const double part = area * options_.scale.draw(random);
    const double ratio = std::exp(log_ratio.draw(random));
    const double width = std::nearbyint(std::sqrt(part * ratio));
    const double height = std::nearbyint(std::sqrt(part / ratio));
    if (0 < width && width <= source.width && 0 < height && height <= source.height) {
      Box box{.height = static_cast<int>(height), .width = static_cast<int>(width)};
      box.top = static_cast<int>(random.integer(0, source.height - box.height));
      box.left = static_cast<int>(random.integer(0, source.width - box.width));
      return box;
    }
  }
  Size part = source;
  const double ratio = static_cast<double>(source.width) / source.height;
  if (ratio < ratios.low) {
    part.height = std::max(1, half_even(source.width / ratios.low));
  } else if (ratio > ratios.high) {
    part.width = std::max(1, half_even(source.height * ratios.high));
  }
  return {.top = (source.height - part.height) / 2,
          .left = (source.width - part.width) / 2,
          .height = part.height,
          .width = part.width};
}

Picture RandomResizedCrop::operator()(Picture picture, data::Random& random) const {
  constexpr std::string_view kWhere = "vision.RandomResizedCrop";
  const Box box = draw(picture.size(), random);
  return resize(crop(std::move(picture), kWhere, box),
                kWhere,
                size_,
                {options_.interpolation, options_.antialias});
}

std::string RandomResizedCrop::to_string() const {
  const RandomResizedCropOptions usual;
  return Description(kName)
      .argument(size_)
      .option("scale", options_.scale, usual.scale)
      .option("ratio", options_.ratio, usual.ratio)
      .option("interpolation", options_.interpolation, usual.interpolation)
      .option("antialias", options_.antialias, usual.antialias)
      .done();
}

}  // namespace argosy::vision
