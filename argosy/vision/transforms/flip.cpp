#include "argosy/vision/transforms/flip.h"

#include "argosy/base/check.h"
#include "argosy/image/geometry.h"
#include "argosy/vision/transforms/description.h"
#include "argosy/vision/transforms/on_pixels.h"

namespace argosy::vision {
namespace {

using image::Image;

void check(std::string_view where, const FlipOptions& options) {
  detail::check_probability(where, "p", options.p);
  for (const auto& [a, b] : options.keypoint_pairs) {
    ARGOSY_CHECK(a >= 0 && b >= 0,
                 where,
                 "option keypoint_pairs: expected numbers of points, got {{{}, {}}}",
                 a,
                 b);
  }
}

void exchange(Picture& picture, std::string_view where, const FlipOptions& options) {
  if (!picture.points().defined() || options.keypoint_pairs.empty()) {
    return;
  }
  const at::Tensor points = picture.points().clone();
  auto* const xy = points.data_ptr<float>();
  for (const auto& [a, b] : options.keypoint_pairs) {
    ARGOSY_CHECK(
        a < points.size(0) && b < points.size(0),
        where,
        "option keypoint_pairs names {{{}, {}}}: expected points of the picture, which has "
        "{} of them",
        a,
        b,
        points.size(0));
    std::swap(xy[2 * a], xy[2 * b]);
    std::swap(xy[2 * a + 1], xy[2 * b + 1]);
  }
  picture.set_points(points);
}

std::string describe(std::string_view name, const FlipOptions& options) {
  return detail::Description(name)
      .option("p", options.p, 0.5)
      .option("keypoint_pairs", static_cast<int>(options.keypoint_pairs.size()), 0)
      .done();
}

}  // namespace

RandomHorizontalFlip::RandomHorizontalFlip(FlipOptions options) : options_(std::move(options)) {
  check("vision.RandomHorizontalFlip", options_);
}

Picture RandomHorizontalFlip::operator()(Picture picture, data::Random& random) const {
  constexpr std::string_view kWhere = "vision.RandomHorizontalFlip";
  if (!draw(random)) {
    return picture;
  }
  picture.map_points(image::flip_horizontally_map(picture.size()));
  exchange(picture, kWhere, options_);
  return detail::on_pixels(std::move(picture), kWhere, [](const Image& image) {
    return image::flip_horizontally(image);
  });
}

std::string RandomHorizontalFlip::to_string() const {
  return describe(kName, options_);
}

RandomVerticalFlip::RandomVerticalFlip(FlipOptions options) : options_(std::move(options)) {
  check("vision.RandomVerticalFlip", options_);
}

Picture RandomVerticalFlip::operator()(Picture picture, data::Random& random) const {
  constexpr std::string_view kWhere = "vision.RandomVerticalFlip";
  if (!draw(random)) {
    return picture;
  }
  picture.map_points(image::flip_vertically_map(picture.size()));
  exchange(picture, kWhere, options_);
  return detail::on_pixels(
      std::move(picture), kWhere, [](const Image& image) { return image::flip_vertically(image); });
}

std::string RandomVerticalFlip::to_string() const {
  return describe(kName, options_);
}

}  // namespace argosy::vision
