#pragma once

#include <array>
#include <optional>

#include "argosy/image/geometry.h"

// Internal to the room: maps positions in the new image to positions in the old one.
namespace argosy::image::detail {

/// Maps a new position to the old one: (a x + b y + c, d x + e y + f).
using Affine = std::array<double, 6>;
/// The same, with both divided by (g x + h y + 1).
using Perspective = std::array<double, 8>;

[[nodiscard]] inline PointF at(const Affine& m, double x, double y) {
  return {m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5]};
}
[[nodiscard]] inline PointF at(const Perspective& m, double x, double y) {
  const double w = m[6] * x + m[7] * y + 1;
  return {(m[0] * x + m[1] * y + m[2]) / w, (m[3] * x + m[4] * y + m[5]) / w};
}

struct Rotation {
  Affine map{};
  Size size{};                         ///< size of the new image
  std::optional<int> quarter_turns{};  ///< set if no position lies between pixels
};

/// Computes it like Pillow's Image.rotate.
[[nodiscard]] Rotation rotation_of(Size size, double degrees, const RotateOptions& options);

/// Computes it like torchvision.
[[nodiscard]] Affine inverse_affine(Size size, const AffineOptions& options);
[[nodiscard]] Perspective inverse_perspective(const std::array<PointF, 4>& start,
                                              const std::array<PointF, 4>& end);

}  // namespace argosy::image::detail
