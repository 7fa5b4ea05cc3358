#pragma once

#include <algorithm>
#include <cstdint>

#include "argosy/image/image.h"

// Internal to the room: weighs colors by their alpha in Pillow's arithmetic (its mode RGBa), so
// that invisible pixels do not change their neighbours.
namespace argosy::image::detail {

/// Returns value × alpha / 255, rounded.
[[nodiscard]] inline uint8_t premultiplied(uint8_t value, uint8_t alpha) {
  const uint32_t product = uint32_t{value} * alpha + 128;
  return static_cast<uint8_t>(((product >> 8) + product) >> 8);
}

/// Returns value × 255 / alpha, cut. Returns the value itself if alpha is 0.
[[nodiscard]] inline uint8_t unpremultiplied(uint8_t value, uint8_t alpha) {
  return alpha == 0 ? value : static_cast<uint8_t>(std::min(255, 255 * value / alpha));
}

/// Both take a u8 RGBA image.
[[nodiscard]] Image premultiply(const Image& image);
void unpremultiply(Image& image);

}  // namespace argosy::image::detail
