#include "argosy/events/log_values.h"

#include "argosy/base/check.h"
#include "argosy/image/codec.h"

#include <nlohmann/json.hpp>

namespace argosy::events {
namespace {}  // namespace

LogPicture log_picture(const image::Image& picture) {
  ARGOSY_CHECK(!picture.empty() && picture.type() == image::Type::kU8,
               "events.add_image",
               "expected a picture of u8, got {}",
               picture.empty() ? "an empty one" : "f32. Scale it to 0…255 first");
  return {.png = image::encode_png(picture),
          .height = picture.height(),
          .width = picture.width(),
          .channels = picture.channels()};
}

LogPicture log_picture(std::span<const uint8_t> png) {
  ARGOSY_CHECK(image::sniff(png) == image::Format::kPng,
               "events.add_image",
               "expected the bytes of a PNG, got {} bytes of something else",
               png.size());
  const image::ImageInfo info = image::probe(png, "add_image");
  return {.png = {png.begin(), png.end()},
          .height = info.size.height,
          .width = info.size.width,
          .channels = info.channels};
}

std::string valid_utf8(std::string_view text) {
  const std::string quoted =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(quoted).get<std::string>();
}

}  // namespace argosy::events
