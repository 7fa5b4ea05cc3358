#include "argosy/datasets/canvas.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/base/strings.h"
#include "argosy/datasets/font.h"

namespace argosy::datasets {
namespace {

constexpr int kAdvance = kGlyphWidth + 1;

/// A pixel of a picture as colour, and how much of it covers what is below (255: all).
struct Ink {
  Colour colour{};
  int cover = 255;
};

Ink ink_of(const uint8_t* pixel, image::Order order) {
  switch (order) {
    case image::Order::kGray:
      return {{pixel[0], pixel[0], pixel[0]}};
    case image::Order::kRgb:
      return {{pixel[0], pixel[1], pixel[2]}};
    case image::Order::kBgr:
      return {{pixel[2], pixel[1], pixel[0]}};
    case image::Order::kRgba:
      return {{pixel[0], pixel[1], pixel[2]}, pixel[3]};
  }
  return {};
}

uint8_t mixed(uint8_t above, uint8_t below, int cover) {
  return static_cast<uint8_t>((above * cover + below * (255 - cover) + 127) / 255);
}

/// A byte of UTF-8 behind a character's first.
bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

}  // namespace

Colour class_colour(int64_t index) {
  // Hues a golden angle apart: however many classes there are, neighbours are far from each other.
  constexpr double kGoldenTurn = 0.381966;
  const double turn = kGoldenTurn * static_cast<double>(index) + 0.58;
  const double hue = (turn - std::floor(turn)) * 6;
  const auto channel = [&](double centre) {
    const double distance = std::min(std::abs(hue - centre), 6 - std::abs(hue - centre));
    return static_cast<uint8_t>(std::lround(40 + 165 * std::clamp(2 - distance, 0.0, 1.0)));
  };
  return {channel(0), channel(2), channel(4)};
}

Canvas::Canvas(image::Size size, Colour background) : picture_(size, image::Order::kRgb) {
  fill({.top = 0, .left = 0, .height = size.height, .width = size.width}, background);
}

void Canvas::set(int y, int x, Colour colour) {
  if (y < 0 || y >= picture_.height() || x < 0 || x >= picture_.width()) {
    return;
  }
  auto* pixel = picture_.row<uint8_t>(y) + ptrdiff_t{3} * x;
  pixel[0] = colour.red;
  pixel[1] = colour.green;
  pixel[2] = colour.blue;
}

void Canvas::fill(const image::Box& box, Colour colour) {
  for (int y = box.top; y < box.top + box.height; ++y) {
    for (int x = box.left; x < box.left + box.width; ++x) {
      set(y, x, colour);
    }
  }
}

void Canvas::draw(At at, const image::Image& picture) {
  ARGOSY_CHECK(
      picture.type() == image::Type::kU8, "datasets.draw", "expected a picture of u8, got f32");
  const int height = std::min(picture.height(), picture_.height() - at.top);
  const int width = std::min(picture.width(), picture_.width() - at.left);
  for (int y = std::max(0, -at.top); y < height; ++y) {
    for (int x = std::max(0, -at.left); x < width; ++x) {
      const Ink ink =
          ink_of(picture.row<uint8_t>(y) + ptrdiff_t{picture.channels()} * x, picture.order());
      const auto* below = picture_.row<uint8_t>(at.top + y) + ptrdiff_t{3} * (at.left + x);
      set(at.top + y,
          at.left + x,
          {mixed(ink.colour.red, below[0], ink.cover),
           mixed(ink.colour.green, below[1], ink.cover),
           mixed(ink.colour.blue, below[2], ink.cover)});
    }
  }
}

void Canvas::text(At at, std::string_view text, Colour colour, int scale) {
  for (const char character : text) {
    if (continues_character(character)) {
      continue;  // its first byte was drawn
    }
    const auto& rows = glyph(character);
    for (int y = 0; y < kGlyphHeight; ++y) {
      for (int x = 0; x < kGlyphWidth; ++x) {
        if ((rows.at(static_cast<size_t>(y)) >> (kGlyphWidth - 1 - x) & 1) != 0) {
          fill({.top = at.top + y * scale,
                .left = at.left + x * scale,
                .height = scale,
                .width = scale},
               colour);
        }
      }
    }
    at.left += kAdvance * scale;
  }
}

void Canvas::dot(At centre, int radius, Colour colour) {
  for (int y = -radius; y <= radius; ++y) {
    for (int x = -radius; x <= radius; ++x) {
      if (x * x + y * y <= radius * radius + radius / 2) {
        set(centre.top + y, centre.left + x, colour);
      }
    }
  }
}

int text_width(std::string_view text, int scale) {
  return text.empty() ? 0 : (static_cast<int>(strings::columns(text)) * kAdvance - 1) * scale;
}

std::string fitting_text(std::string_view text, int width, int scale) {
  constexpr std::string_view kCut = "..";
  if (text_width(text, scale) <= width) {
    return std::string(text);
  }
  const int room = width - text_width(kCut, scale) - scale;
  size_t most = strings::columns(text);
  while (most > 0 && text_width(strings::first_columns(text, most), scale) > room) {
    --most;
  }
  return std::string(strings::first_columns(text, most)).append(kCut);
}

}  // namespace argosy::datasets
