#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "argosy/base/check.h"
#include "argosy/image/image.h"

// Internal to the room: pixels that are moved without a look at their content.
namespace argosy::image::detail {

inline void check_not_empty(const Image& image, const char* where) {
  ARGOSY_CHECK(!image.empty(), where, "the image is empty");
}

template <size_t kBytes>
struct Pixel {
  std::array<std::byte, kBytes> bytes;
};

/// Calls body(Pixel<…>{}) with a type of the size of the image's pixels.
template <typename Body>
void with_pixel(const Image& image, const Body& body) {
  switch (static_cast<size_t>(image.channels()) * bytes_of(image.type())) {
    case 1:
      return body(Pixel<1>{});
    case 3:
      return body(Pixel<3>{});
    case 4:
      return body(Pixel<4>{});
    case 12:
      return body(Pixel<12>{});
    default:
      return body(Pixel<16>{});
  }
}

/// Converts a number to a channel of u8: its whole part, limited to 0 to 255.
[[nodiscard]] inline uint8_t cut_u8(float value) {
  return static_cast<uint8_t>(value >= 255 ? 255 : value > 0 ? value : 0);
}

/// Converts a color to a pixel of the image.
template <typename P>
P color_of(Type type, const std::array<float, 4>& values) {
  P pixel;
  if (type == Type::kF32) {
    std::memcpy(pixel.bytes.data(), values.data(), std::min(sizeof pixel, sizeof values));
  } else {
    for (size_t c = 0; c < std::min<size_t>(4, pixel.bytes.size()); ++c) {
      pixel.bytes[c] = std::byte{cut_u8(values[c])};
    }
  }
  return pixel;
}

}  // namespace argosy::image::detail
