#include "argosy/vision/transforms/erasing.h"

#include <cmath>
#include <limits>
#include <utility>

#include "argosy/vision/transforms/description.h"
#include "argosy/vision/transforms/on_pixels.h"

namespace argosy::vision {
namespace {

using image::Image;

template <typename T, typename Draw>
void fill_with(Image& image, const image::Box& box, const Draw& draw) {
  for (int y = box.top; y < box.top + box.height; ++y) {
    T* const row = image.row<T>(y);
    for (int x = box.left * image.channels(); x < (box.left + box.width) * image.channels(); ++x) {
      row[x] = static_cast<T>(draw());
    }
  }
}

Image with_noise(Image image, const image::Box& box, data::Random& random) {
  if (image.type() == image::Type::kU8) {
    fill_with<uint8_t>(image, box, [&] { return random.integer(0, 255); });
  } else {
    fill_with<float>(image, box, [&] { return random.normal(); });
  }
  return image;
}

}  // namespace

RandomErasing::RandomErasing(const RandomErasingOptions& options) : options_(options) {
  constexpr std::string_view kWhere = "vision.RandomErasing";
  detail::check_probability(kWhere, "p", options.p);
  detail::check_range(kWhere, "scale", options.scale, {0, 1});
  detail::check_range(kWhere,
                      "ratio",
                      options.ratio,
                      {std::numeric_limits<double>::min(), std::numeric_limits<double>::max()});
}

std::optional<image::Box> RandomErasing::draw(image::Size size, data::Random& random) const {
  const double area = static_cast<double>(size.height) * size.width;
  const Range log_ratio{std::log(options_.ratio.low), std::log(options_.ratio.high)};
  for (int tries = 0; tries < 10; ++tries) {
    const double erased = area * options_.scale.draw(random);
    const double ratio = std::exp(log_ratio.draw(random));
    const double height = std::nearbyint(std::sqrt(erased * ratio));
    const double width = std::nearbyint(std::sqrt(erased / ratio));
    if (height < size.height && width < size.width) {
      image::Box box{.height = static_cast<int>(height), .width = static_cast<int>(width)};
      box.top = static_cast<int>(random.integer(0, size.height - box.height));
      box.left = static_cast<int>(random.integer(0, size.width - box.width));
      return box;
    }
  }
  return std::nullopt;
}

Picture RandomErasing::operator()(Picture picture, data::Random& random) const {
  if (!random.bernoulli(options_.p)) {
    return picture;
  }
  const std::optional<image::Box> box = draw(picture.size(), random);
  if (!box.has_value() || box->height == 0 || box->width == 0) {
    return picture;
  }
  return detail::on_pixels(std::move(picture), "vision.RandomErasing", [&](Image image) {
    return options_.with == EraseWith::kNoise ? with_noise(std::move(image), *box, random)
                                              : image::erase(image, *box, options_.value);
  });
}

std::string RandomErasing::to_string() const {
  const RandomErasingOptions usual;
  return detail::Description(kName)
      .option("p", options_.p, usual.p)
      .option("scale", options_.scale, usual.scale)
      .option("ratio", options_.ratio, usual.ratio)
      .option("with",
              std::string_view(options_.with == EraseWith::kNoise ? "noise" : "value"),
              std::string_view("value"))
      .option("value", options_.value, usual.value)
      .done();
}

}  // namespace argosy::vision
