#pragma once

#include <optional>
#include <string>
#include <vector>

#include "argosy/datasets/canvas.h"
#include "argosy/image/image.h"

namespace argosy::datasets {

/// Points on a picture, in its own pixels: x, y, x, y, … (NaN: not drawn).
struct Dots {
  std::vector<float> points{};
  Colour colour{.red = 230, .green = 30, .blue = 30};
};

/// One picture of a sheet.
struct Tile {
  image::Image picture{};        ///< u8
  std::string caption{};         ///< ASCII; cut where it is too long
  std::optional<Colour> mark{};  ///< colour beside the caption: the class, right or wrong …
  std::vector<Dots> dots{};
};

struct ContactSheetOptions {
  int columns = 10;
  int side = 96;  ///< of the square that each picture is fitted into, in pixels
};

/// Pictures side by side, row by row, each with its caption below:
///
///     image::Image sheet = contact_sheet(tiles, {.columns = 8});
///
/// Small pictures grow by a whole number (pixels stay visible), large ones shrink, without
/// distortion. Errors: UsageError for no tiles, or options below 1; f32 pictures.
[[nodiscard]] image::Image contact_sheet(const std::vector<Tile>& tiles,
                                         const ContactSheetOptions& options = {});

/// Pictures below each other on white, with a margin.
[[nodiscard]] image::Image stacked(const std::vector<image::Image>& pictures);

}  // namespace argosy::datasets
