#pragma once

#include <array>

namespace argosy::image {

/// A place in an image, x to the right, y down: pixel (0, 0) covers [0, 1) × [0, 1), its centre is
/// at (0.5, 0.5). Data sets often give columns and rows instead, with (0, 0) for that centre: see
/// PointMap::of_indices().
struct PointF {
  double x = 0;
  double y = 0;
  bool operator==(const PointF&) const = default;
};

/// Where a change of an image's shape sends its points: a 3 × 3 matrix over (x, y, 1).
///
///     PointMap map = crop_map(box).then(flip_horizontally_map({box.height, box.width}));
///     PointF eye = map_point(map, {31.5, 20.5});
struct PointMap {
  std::array<double, 9> rows{1, 0, 0, 0, 1, 0, 0, 0, 1};

  /// This one first, `next` after it.
  [[nodiscard]] PointMap then(const PointMap& next) const;
  /// The way back. Errors: UsageError where there is none.
  [[nodiscard]] PointMap inverse() const;
  /// The same for points that are columns and rows: half a pixel is added before and taken off
  /// after.
  [[nodiscard]] PointMap of_indices() const;

  [[nodiscard]] static PointMap moving(double x, double y);
  [[nodiscard]] static PointMap scaling(double x, double y);
};

/// Where the map sends a point.
[[nodiscard]] PointF map_point(const PointMap& map, PointF point);

}  // namespace argosy::image
