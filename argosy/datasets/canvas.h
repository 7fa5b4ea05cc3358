#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "argosy/image/image.h"

namespace argosy::datasets {

struct Colour {
  uint8_t red = 0;
  uint8_t green = 0;
  uint8_t blue = 0;
};

/// The colour of class `index`: neighbours differ much, all are readable on white.
[[nodiscard]] Colour class_colour(int64_t index);

/// A place on a canvas, in pixels from its left upper corner.
struct At {
  int top = 0;
  int left = 0;
};

/// A picture to draw charts and labels on. What would lie outside is not drawn.
///
///     Canvas canvas({.height = 100, .width = 200}, kWhite);
///     canvas.text({10, 10}, "cat: 5,000", kBlack);
///     image::write_file("chart.png", image::encode_png(canvas.picture()));
class Canvas final {
 public:
  Canvas(image::Size size, Colour background);

  void fill(const image::Box& box, Colour colour);
  /// Draws a grey, RGB, BGR or RGBA (over what is there) picture of u8. Errors: UsageError for f32.
  void draw(At at, const image::Image& picture);
  /// Printable ASCII, 5 × 7 pixels a character (and 2 below the line), times `scale`; its left
  /// upper corner is at `at`.
  /// Characters beyond ASCII are a '?' each.
  void text(At at, std::string_view text, Colour colour, int scale = 1);
  /// A disc.
  void dot(At centre, int radius, Colour colour);

  [[nodiscard]] const image::Image& picture() const { return picture_; }

 private:
  void set(int y, int x, Colour colour);
  image::Image picture_;
};

[[nodiscard]] int text_width(std::string_view text, int scale = 1);
/// The part of `text` that fits into `width` pixels, with ".." where something is cut off.
[[nodiscard]] std::string fitting_text(std::string_view text, int width, int scale = 1);

inline constexpr int kTextHeight = 7;  ///< down to the line

}  // namespace argosy::datasets
