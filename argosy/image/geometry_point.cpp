#include "argosy/image/geometry_point.h"

#include <cmath>

#include "argosy/base/check.h"

namespace argosy::image {

PointMap PointMap::then(const PointMap& next) const {
  PointMap result;
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (size_t k = 0; k < 3; ++k) {
        sum += next.rows[3 * i + k] * rows[3 * k + j];
      }
      result.rows[3 * i + j] = sum;
    }
  }
  return result;
}

PointMap PointMap::inverse() const {
  const auto& [a, b, c, d, e, f, g, h, i] = rows;
  const std::array<double, 9> adjugate{e * i - f * h,
                                       c * h - b * i,
                                       b * f - c * e,
                                       f * g - d * i,
                                       a * i - c * g,
                                       c * d - a * f,
                                       d * h - e * g,
                                       b * g - a * h,
                                       a * e - b * d};
  const double determinant = a * adjugate[0] + b * adjugate[3] + c * adjugate[6];
  ARGOSY_CHECK(std::isfinite(1 / determinant),
               "image.PointMap",
               "several points are sent to the same place: there is no way back");
  PointMap result;
  for (size_t k = 0; k < 9; ++k) {
    result.rows[k] = adjugate[k] / determinant;
  }
  return result;
}

PointMap PointMap::of_indices() const {
  return moving(0.5, 0.5).then(*this).then(moving(-0.5, -0.5));
}

PointMap PointMap::moving(double x, double y) {
  return {{1, 0, x, 0, 1, y, 0, 0, 1}};
}

PointMap PointMap::scaling(double x, double y) {
  return {{x, 0, 0, 0, y, 0, 0, 0, 1}};
}

PointF map_point(const PointMap& map, PointF point) {
  const auto& m = map.rows;
  const double w = m[6] * point.x + m[7] * point.y + m[8];
  return {(m[0] * point.x + m[1] * point.y + m[2]) / w,
          (m[3] * point.x + m[4] * point.y + m[5]) / w};
}

}  // namespace argosy::image
