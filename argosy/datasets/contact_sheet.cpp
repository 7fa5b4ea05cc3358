#include "argosy/datasets/contact_sheet.h"

#include <algorithm>
#include <cmath>

#include "argosy/base/check.h"
#include "argosy/image/resize.h"

namespace argosy::datasets {
namespace {

constexpr Colour kWhite{255, 255, 255};
constexpr Colour kInk{40, 40, 40};
constexpr int kGap = 6;
constexpr int kCaptionHeight = kTextHeight + 7;

/// How much larger a picture is drawn: whole numbers where it grows.
double scale_of(const image::Image& picture, int side) {
  const double fit = static_cast<double>(side) / std::max(picture.height(), picture.width());
  return fit >= 1 ? std::floor(fit) : fit;
}

image::Image scaled(const image::Image& picture, double scale) {
  if (scale == 1) {
    return picture;
  }
  const image::Size size{
      .height = std::max(1, static_cast<int>(std::lround(picture.height() * scale))),
      .width = std::max(1, static_cast<int>(std::lround(picture.width() * scale)))};
  return image::resize(picture,
                       size,
                       {.interpolation = scale > 1 ? image::Interpolation::kNearest
                                                   : image::Interpolation::kBilinear});
}

void draw_dots(Canvas& canvas, At corner, const Dots& dots, double scale) {
  const int radius = std::max(1, static_cast<int>(std::lround(scale)));
  for (size_t i = 0; i + 1 < dots.points.size(); i += 2) {
    const double x = dots.points[i];
    const double y = dots.points[i + 1];
    constexpr double kFar = 1e6;                     // beyond any picture, and still an int
    if (std::abs(x) < kFar && std::abs(y) < kFar) {  // not for NaN
      // A coordinate of 0 is the middle of the first pixel.
      canvas.dot({.top = corner.top + static_cast<int>(std::floor((y + 0.5) * scale)),
                  .left = corner.left + static_cast<int>(std::floor((x + 0.5) * scale))},
                 radius,
                 dots.colour);
    }
  }
}

void draw_tile(Canvas& canvas, At at, const Tile& tile, int side) {
  const double scale = scale_of(tile.picture, side);
  const image::Image picture = scaled(tile.picture, scale);
  const At corner{.top = at.top + (side - picture.height()) / 2,
                  .left = at.left + (side - picture.width()) / 2};
  canvas.draw(corner, picture);
  for (const Dots& dots : tile.dots) {
    draw_dots(canvas, corner, dots, scale);
  }
  if (!tile.caption.empty()) {
    const int below = at.top + side + 3;
    int left = 0;
    if (tile.mark) {
      canvas.fill({.top = below, .left = at.left, .height = kTextHeight, .width = 4}, *tile.mark);
      left = 7;
    }
    canvas.text(
        {.top = below, .left = at.left + left}, fitting_text(tile.caption, side - left), kInk);
  }
}

}  // namespace

image::Image contact_sheet(const std::vector<Tile>& tiles, const ContactSheetOptions& options) {
  ARGOSY_CHECK(!tiles.empty() && options.columns >= 1 && options.side >= 1,
               "datasets.contact_sheet",
               "expected at least one tile, one column and one pixel, got {}, {} and {}",
               tiles.size(),
               options.columns,
               options.side);
  const int count = static_cast<int>(tiles.size());
  const int columns = std::min(options.columns, count);
  const int rows = (count + columns - 1) / columns;
  const int width = options.side + kGap;
  const int height = options.side + kCaptionHeight + kGap;
  Canvas canvas({.height = rows * height - kGap, .width = columns * width - kGap}, kWhite);
  for (int i = 0; i < count; ++i) {
    draw_tile(canvas,
              {.top = i / columns * height, .left = i % columns * width},
              tiles[static_cast<size_t>(i)],
              options.side);
  }
  return canvas.picture();
}

image::Image stacked(const std::vector<image::Image>& pictures) {
  constexpr int kMargin = 16;
  image::Size size{.height = kMargin, .width = 1};
  for (const image::Image& picture : pictures) {
    size.height += picture.height() + kMargin;
    size.width = std::max(size.width, picture.width() + 2 * kMargin);
  }
  Canvas canvas(size, kWhite);
  At at{.top = kMargin, .left = kMargin};
  for (const image::Image& picture : pictures) {
    canvas.draw(at, picture);
    at.top += picture.height() + kMargin;
  }
  return canvas.picture();
}

}  // namespace argosy::datasets
