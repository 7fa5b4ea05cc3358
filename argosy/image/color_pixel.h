#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "argosy/image/image.h"

// Internal to the room: the meaning of a pixel's channels.
namespace argosy::image::detail {

/// Positions of the channels. They are the same for gray. alpha is -1 if there is none.
struct Places {
  int red = 0;
  int green = 0;
  int blue = 0;
  int alpha = -1;
};

[[nodiscard]] constexpr Places places_of(Order order) {
  switch (order) {
    case Order::kRgb:
      return {0, 1, 2, -1};
    case Order::kBgr:
      return {2, 1, 0, -1};
    case Order::kRgba:
      return {0, 1, 2, 3};
    case Order::kGray:
      break;
  }
  return {};
}

/// Returns the number of channels that are colors.
[[nodiscard]] inline int colors_of(const Image& image) {
  return image.order() == Order::kRgba ? 3 : image.channels();
}

/// The value of white.
template <typename T>
inline constexpr T kWhite = std::is_same_v<T, uint8_t> ? 255 : 1;

/// Returns the gray of a color: Pillow's for u8, torchvision's for f32.
[[nodiscard]] inline uint8_t gray_of(uint8_t red, uint8_t green, uint8_t blue) {
  return static_cast<uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}
[[nodiscard]] inline float gray_of(float red, float green, float blue) {
  return 0.2989F * red + 0.587F * green + 0.114F * blue;
}

/// Returns `dull` for factor = 0 and `value` for factor = 1.
[[nodiscard]] inline uint8_t blend(uint8_t dull, uint8_t value, float factor) {
  const float sum = static_cast<float>(dull) + factor * static_cast<float>(int{value} - int{dull});
  return static_cast<uint8_t>(sum <= 0 ? 0 : sum >= 255 ? 255 : sum);
}
[[nodiscard]] inline float blend(float dull, float value, double factor) {
  return std::clamp(
      static_cast<float>(factor) * value + static_cast<float>(1 - factor) * dull, 0.0F, 1.0F);
}

/// Calls body(T{}) with the type of the image's channels.
template <typename Body>
void with_type(const Image& image, const Body& body) {
  if (image.type() == Type::kU8) {
    body(uint8_t{});
  } else {
    body(float{});
  }
}

/// Calls body(from, to) for each pixel of two images of one size.
template <typename T, typename Body>
void for_each_pixel(const Image& image, Image& result, const Body& body) {
  for (int y = 0; y < image.height(); ++y) {
    const T* from = image.row<T>(y);
    T* to = result.row<T>(y);
    for (int x = 0; x < image.width(); ++x, from += image.channels(), to += result.channels()) {
      body(from, to);
    }
  }
}

}  // namespace argosy::image::detail
