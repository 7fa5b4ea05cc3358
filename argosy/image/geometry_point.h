#pragma once

#include <array>

namespace argosy::image {

/// A position in an image, x to the right, y down. Pixel (0, 0) covers [0, 1) × [0, 1), so its
/// centre is at (0.5, 0.5). Data sets often give columns and rows instead, where (0, 0) is that
/// centre; see PointMap::of_indices().
struct PointF {
  double x = 0;
  double y = 0;
  bool operator==(const PointF&) const = default;
};

/// Maps the points of an image when its shape changes, by a 3 × 3 matrix over (x, y, 1).
///
///     PointMap map = crop_map(box).then(flip_horizontally_map({box.height, box.width}));
///     PointF eye = map_point(map, {31.5, 20.5});
struct PointMap {
  std::array<double, 9> rows{1, 0, 0, 0, 1, 0, 0, 0, 1};

  /// Returns the map that applies this one first and then `next`.
  [[nodiscard]] PointMap then(const PointMap& next) const;
  /// Returns the inverse. Errors: UsageError when there is none.
  [[nodiscard]] PointMap inverse() const;
  /// Returns the same map for points that are columns and rows. It adds half a pixel before and
  /// subtracts it after.
  [[nodiscard]] PointMap of_indices() const;

  [[nodiscard]] static PointMap moving(double x, double y);
  [[nodiscard]] static PointMap scaling(double x, double y);
};

/// Returns the position to which the map sends a point.
[[nodiscard]] PointF map_point(const PointMap& map, PointF point);

}  // namespace argosy::image
