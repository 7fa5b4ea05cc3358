#include "argosy/vision/transforms/warp.h"

#include <cmath>
#include <limits>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/vision/transforms/description.h"
#include "argosy/vision/transforms/on_pixels.h"

namespace argosy::vision {
namespace {

using detail::Description;
using detail::on_pixels;
using image::Image;

constexpr double kMost = std::numeric_limits<double>::max();

/// 45 as [-45, 45].
Range both_sides(std::string_view where, double degrees) {
  ARGOSY_CHECK(degrees >= 0, where, "degrees must not be negative, got {}", degrees);
  return {-degrees, degrees};
}

bool is_zero(const Range& range) {
  return range.low == 0 && range.high == 0;
}

}  // namespace

RandomRotation::RandomRotation(double degrees, const image::RotateOptions& options)
    : RandomRotation(both_sides("vision.RandomRotation", degrees), options) {}

RandomRotation::RandomRotation(const Range& degrees, const image::RotateOptions& options)
    : degrees_(degrees), options_(options) {
  detail::check_range("vision.RandomRotation", "degrees", degrees, {-kMost, kMost});
}

Picture RandomRotation::operator()(Picture picture, data::Random& random) const {
  const double degrees = degrees_.draw(random);
  picture.map_points(image::rotate_map(picture.size(), degrees, options_));
  return on_pixels(std::move(picture), "vision.RandomRotation", [&](const Image& image) {
    return image::rotate(image, degrees, options_);
  });
}

std::string RandomRotation::to_string() const {
  const image::RotateOptions usual;
  return Description(kName)
      .argument(degrees_)
      .option("interpolation", options_.interpolation, usual.interpolation)
      .option("expand", options_.expand == image::Expand::kOn, usual.expand == image::Expand::kOn)
      .option("center", options_.center, usual.center)
      .option("fill", options_.fill, usual.fill)
      .done();
}

RandomAffine::RandomAffine(double degrees, const RandomAffineOptions& options)
    : RandomAffine(both_sides("vision.RandomAffine", degrees), options) {}

RandomAffine::RandomAffine(const Range& degrees, const RandomAffineOptions& options)
    : degrees_(degrees), options_(options) {
  constexpr std::string_view kWhere = "vision.RandomAffine";
  detail::check_range(kWhere, "degrees", degrees, {-kMost, kMost});
  detail::check_probability(kWhere, "translate.x", options.translate.x);
  detail::check_probability(kWhere, "translate.y", options.translate.y);
  detail::check_range(kWhere, "scale", options.scale, {std::numeric_limits<double>::min(), kMost});
  detail::check_range(kWhere, "shear_x", options.shear_x, {-kMost, kMost});
  detail::check_range(kWhere, "shear_y", options.shear_y, {-kMost, kMost});
}

image::AffineOptions RandomAffine::draw(image::Size size, data::Random& random) const {
  image::AffineOptions affine;
  affine.angle = degrees_.draw(random);
  if (options_.translate != RandomAffineOptions::Shift{}) {
    const double x = options_.translate.x * size.width;
    const double y = options_.translate.y * size.height;
    affine.translate.x = std::nearbyint(random.uniform(-x, x));
    affine.translate.y = std::nearbyint(random.uniform(-y, y));
  }
  if (options_.scale != Range{1, 1}) {
    affine.scale = options_.scale.draw(random);
  }
  if (!is_zero(options_.shear_x) || !is_zero(options_.shear_y)) {
    affine.shear_x = options_.shear_x.draw(random);
    if (!is_zero(options_.shear_y)) {
      affine.shear_y = options_.shear_y.draw(random);
    }
  }
  affine.interpolation = options_.interpolation;
  affine.fill = options_.fill;
  affine.center = options_.center;
  return affine;
}

Picture RandomAffine::operator()(Picture picture, data::Random& random) const {
  const image::AffineOptions affine = draw(picture.size(), random);
  picture.map_points(image::affine_map(picture.size(), affine));
  return on_pixels(std::move(picture), "vision.RandomAffine", [&](const Image& image) {
    return image::affine(image, affine);
  });
}

std::string RandomAffine::to_string() const {
  const RandomAffineOptions usual;
  return Description(kName)
      .argument(degrees_)
      .option("translate",
              Range{options_.translate.x, options_.translate.y},
              Range{usual.translate.x, usual.translate.y})
      .option("scale", options_.scale, usual.scale)
      .option("shear_x", options_.shear_x, usual.shear_x)
      .option("shear_y", options_.shear_y, usual.shear_y)
      .option("interpolation", options_.interpolation, usual.interpolation)
      .option("center", options_.center, usual.center)
      .option("fill", options_.fill, usual.fill)
      .done();
}

RandomPerspective::RandomPerspective(const RandomPerspectiveOptions& options) : options_(options) {
  constexpr std::string_view kWhere = "vision.RandomPerspective";
  detail::check_probability(kWhere, "p", options.p);
  detail::check_probability(kWhere, "distortion_scale", options.distortion_scale);
}

RandomPerspective::Corners RandomPerspective::draw(image::Size size, data::Random& random) const {
  const auto reach = [&](int edge) {
    const int half = edge / 2;  // of whole pixels, as torchvision has it
    return static_cast<int64_t>(options_.distortion_scale * half);
  };
  const int64_t x = reach(size.width);
  const int64_t y = reach(size.height);
  const auto near = [&](int64_t most) { return static_cast<double>(random.integer(0, most)); };
  const auto far = [&](int edge, int64_t most) {
    return static_cast<double>(random.integer(edge - most - 1, edge - 1));
  };
  Corners corners{};  // statements, for the order of the draws
  corners[0].x = near(x);
  corners[0].y = near(y);
  corners[1].x = far(size.width, x);
  corners[1].y = near(y);
  corners[2].x = far(size.width, x);
  corners[2].y = far(size.height, y);
  corners[3].x = near(x);
  corners[3].y = far(size.height, y);
  return corners;
}

Picture RandomPerspective::operator()(Picture picture, data::Random& random) const {
  if (!random.bernoulli(options_.p)) {
    return picture;
  }
  const image::Size size = picture.size();
  const double right = size.width - 1;
  const double bottom = size.height - 1;
  const Corners from{{{0, 0}, {right, 0}, {right, bottom}, {0, bottom}}};
  const Corners to = draw(size, random);
  picture.map_points(image::perspective_map(from, to));
  return on_pixels(std::move(picture), "vision.RandomPerspective", [&](const Image& image) {
    return image::perspective(
        image, from, to, {.interpolation = options_.interpolation, .fill = options_.fill});
  });
}

std::string RandomPerspective::to_string() const {
  const RandomPerspectiveOptions usual;
  return Description(kName)
      .option("distortion_scale", options_.distortion_scale, usual.distortion_scale)
      .option("p", options_.p, usual.p)
      .option("interpolation", options_.interpolation, usual.interpolation)
      .option("fill", options_.fill, usual.fill)
      .done();
}

}  // namespace argosy::vision
