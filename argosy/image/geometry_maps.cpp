#include "argosy/image/geometry_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "argosy/base/check.h"

namespace argosy::image {
namespace detail {
namespace {

double radians(double degrees) {
  return degrees * (std::numbers::pi / 180);
}

/// To 15 decimals, as Python's round(): a quarter turn is one.
double rounded(double value) {
  const std::string text = fmt::format("{:.15f}", value);
  double result = 0;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

/// Solves 8 equations by elimination; the greatest pivot first.
Perspective solved(std::array<std::array<double, 9>, 8> m) {
  for (size_t column = 0; column < 8; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < 8; ++row) {
      if (std::abs(m[row][column]) > std::abs(m[pivot][column])) {
        pivot = row;
      }
    }
    std::swap(m[column], m[pivot]);
    // Coordinates are pixels, at least 1 apart in any picture worth the name.
    ARGOSY_CHECK(std::abs(m[column][column]) > 1e-9,
                 "image.perspective",
                 "expected four points of which no three lie on a line");
    for (size_t row = 0; row < 8; ++row) {
      if (row == column) {
        continue;
      }
      const double factor = m[row][column] / m[column][column];
      for (size_t k = column; k < 9; ++k) {
        m[row][k] -= factor * m[column][k];
      }
    }
  }
  Perspective result{};
  for (size_t i = 0; i < 8; ++i) {
    result[i] = static_cast<float>(m[i][8] / m[i][i]);
  }
  return result;
}

}  // namespace

Rotation rotation_of(Size size, double degrees, const RotateOptions& options) {
  ARGOSY_CHECK(
      std::isfinite(degrees), "image.rotate", "expected a number of degrees, got {}", degrees);
  double turn = std::fmod(degrees, 360.0);
  turn += turn < 0 ? 360.0 : 0.0;
  Rotation result{{}, size, {}};
  if (!options.center) {
    if (turn == 0 || turn == 180) {
      result.quarter_turns = turn == 0 ? 0 : 2;
    } else if ((turn == 90 || turn == 270) &&
               (options.expand == Expand::kOn || size.width == size.height)) {
      result.quarter_turns = turn == 90 ? 1 : 3;
    }
  }
  const PointF center = options.center.value_or(PointF{size.width / 2.0, size.height / 2.0});
  const double angle = -radians(turn);
  Affine& m = result.map;
  m = {rounded(std::cos(angle)),
       rounded(std::sin(angle)),
       0,
       rounded(-std::sin(angle)),
       rounded(std::cos(angle)),
       0};
  const PointF moved = at(m, -center.x, -center.y);
  m[2] = moved.x + center.x;
  m[5] = moved.y + center.y;
  if (options.expand == Expand::kOff) {
    return result;
  }
  const std::array<PointF, 4> corners{
      at(m, 0, 0), at(m, size.width, 0), at(m, size.width, size.height), at(m, 0, size.height)};
  const auto [left, right] = std::minmax({corners[0].x, corners[1].x, corners[2].x, corners[3].x});
  const auto [top, bottom] = std::minmax({corners[0].y, corners[1].y, corners[2].y, corners[3].y});
  result.size = {static_cast<int>(std::ceil(bottom) - std::floor(top)),
                 static_cast<int>(std::ceil(right) - std::floor(left))};
  const PointF corner =
      at(m, -(result.size.width - size.width) / 2.0, -(result.size.height - size.height) / 2.0);
  m[2] = corner.x;
  m[5] = corner.y;
  return result;
}

Affine inverse_affine(Size size, const AffineOptions& options) {
  ARGOSY_CHECK(
      options.scale > 0, "image.affine", "expected a scale above 0, got {}", options.scale);
  const double rot = radians(options.angle);
  const double sx = radians(options.shear_x), sy = radians(options.shear_y);
  const auto [cx, cy] = options.center.value_or(PointF{size.width * 0.5, size.height * 0.5});
  const auto [tx, ty] = options.translate;
  const double a = std::cos(rot - sy) / std::cos(sy);
  const double b = -std::cos(rot - sy) * std::tan(sx) / std::cos(sy) - std::sin(rot);
  const double c = std::sin(rot - sy) / std::cos(sy);
  const double d = -std::sin(rot - sy) * std::tan(sx) / std::cos(sy) + std::cos(rot);
  Affine m{d, -b, 0, -c, a, 0};
  for (double& value : m) {
    value /= options.scale;
  }
  m[2] += m[0] * (-cx - tx) + m[1] * (-cy - ty);
  m[5] += m[3] * (-cx - tx) + m[4] * (-cy - ty);
  m[2] += cx;
  m[5] += cy;
  return m;
}

Perspective inverse_perspective(const std::array<PointF, 4>& start,
                                const std::array<PointF, 4>& end) {
  std::array<std::array<double, 9>, 8> m{};
  for (size_t i = 0; i < 4; ++i) {
    const auto [x, y] = end[i];
    const auto [u, v] = start[i];
    m[2 * i] = {x, y, 1, 0, 0, 0, -u * x, -u * y, u};
    m[2 * i + 1] = {0, 0, 0, x, y, 1, -v * x, -v * y, v};
  }
  return solved(m);
}

}  // namespace detail

namespace {

PointMap forward(const detail::Affine& m) {
  return PointMap{{m[0], m[1], m[2], m[3], m[4], m[5], 0, 0, 1}}.inverse();
}

}  // namespace

PointMap rotate_map(Size image, double degrees, const RotateOptions& options) {
  const detail::Rotation rotation = detail::rotation_of(image, degrees, options);
  if (rotation.quarter_turns) {
    return rotate90_map(image, *rotation.quarter_turns);
  }
  return forward(rotation.map);
}

PointMap affine_map(Size image, const AffineOptions& options) {
  return forward(detail::inverse_affine(image, options));
}

PointMap perspective_map(const std::array<PointF, 4>& start, const std::array<PointF, 4>& end) {
  const detail::Perspective m = detail::inverse_perspective(start, end);
  return PointMap{{m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7], 1}}.inverse();
}

PointMap crop_map(Box box) {
  return PointMap::moving(-box.left, -box.top);
}

PointMap center_crop_map(Size image, Size size) {
  return crop_map(center_box(image, size));
}

PointMap pad_map(Padding padding) {
  return PointMap::moving(padding.left, padding.top);
}

PointMap flip_horizontally_map(Size image) {
  return {{-1, 0, static_cast<double>(image.width), 0, 1, 0, 0, 0, 1}};
}

PointMap flip_vertically_map(Size image) {
  return {{1, 0, 0, 0, -1, static_cast<double>(image.height), 0, 0, 1}};
}

PointMap transpose_map() {
  return {{0, 1, 0, 1, 0, 0, 0, 0, 1}};
}

PointMap rotate90_map(Size image, int quarter_turns) {
  switch ((quarter_turns % 4 + 4) % 4) {
    case 1:
      return transpose_map().then(flip_vertically_map({image.width, image.height}));
    case 2:
      return flip_horizontally_map(image).then(flip_vertically_map(image));
    case 3:
      return flip_vertically_map(image).then(transpose_map());
    default:
      return {};
  }
}

PointMap resize_map(const BoxF& source, Size size) {
  return PointMap::moving(-source.left, -source.top)
      .then(PointMap::scaling(size.width / source.width, size.height / source.height));
}

PointMap resize_map(Size image, Size size) {
  return resize_map(BoxF{0, 0, static_cast<double>(image.height), static_cast<double>(image.width)},
                    size);
}

}  // namespace argosy::image
