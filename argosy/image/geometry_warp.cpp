#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/image/color_alpha.h"
#include "argosy/image/geometry.h"
#include "argosy/image/geometry_maps.h"
#include "argosy/image/geometry_pixel.h"

namespace argosy::image {
namespace {

using detail::Affine;
using detail::at;
using detail::Perspective;

bool inside(const Image& image, PointF point) {  // false for NaN
  return point.x >= 0 && point.x < image.width() && point.y >= 0 && point.y < image.height();
}

// ---- values between pixels, in Pillow's order of operations ----

/// u8 are subtracted as integers, f32 as f32.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, uint8_t>, int, T>;

template <typename W>
double linear(W a, W b, double d) {
  return a + (b - a) * d;
}

template <typename W>
double cubic(W a, W b, W c, W d, double t) {
  const double p1 = b;
  const double p2 = -a + c;
  const double p3 = 2 * (a - b) + c - d;
  const double p4 = -a + b - c + d;
  return p1 + t * (p2 + t * (p3 + t * p4));
}

template <typename T>
T narrowed(double value) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    return static_cast<uint8_t>(value <= 0 ? 0 : value >= 255 ? 255 : value);
  } else {
    return static_cast<T>(value);
  }
}

/// Where a place lies between pixel centres.
struct Between {
  int low;
  double part;
};
Between between(double place) {
  place -= 0.5;
  const double low = std::floor(place);
  return {static_cast<int>(low), place - low};
}

template <typename T>
void sample_linear(const Image& image, PointF point, T* to) {
  const auto [x, dx] = between(point.x);
  const auto [y, dy] = between(point.y);
  const int channels = image.channels();
  const int left = std::max(x, 0) * channels;
  const int right = std::min(x + 1, image.width() - 1) * channels;
  const T* upper = image.row<T>(std::max(y, 0));
  const T* lower = image.row<T>(std::min(y + 1, image.height() - 1));
  for (int c = 0; c < channels; ++c) {
    using W = Wide<T>;
    const double first = linear<W>(upper[left + c], upper[right + c], dx);
    const double second =
        y + 1 < image.height() ? linear<W>(lower[left + c], lower[right + c], dx) : first;
    to[c] = narrowed<T>(linear<double>(first, second, dy));
  }
}

template <typename T>
void sample_cubic(const Image& image, PointF point, T* to) {
  const auto [x, dx] = between(point.x);
  const auto [y, dy] = between(point.y);
  const int channels = image.channels();
  std::array<int, 4> columns{};
  for (int k = 0; k < 4; ++k) {
    columns[static_cast<size_t>(k)] = std::clamp(x - 1 + k, 0, image.width() - 1) * channels;
  }
  for (int c = 0; c < channels; ++c) {
    std::array<double, 4> v{};
    for (int k = 0; k < 4; ++k) {
      const T* row = image.row<T>(std::clamp(y - 1 + k, 0, image.height() - 1)) + c;
      v[static_cast<size_t>(k)] =
          cubic<Wide<T>>(row[columns[0]], row[columns[1]], row[columns[2]], row[columns[3]], dx);
    }
    to[c] = narrowed<T>(cubic<double>(v[0], v[1], v[2], v[3], dy));
  }
}

// ---- all pixels ----

struct Target {
  Image image;
  std::array<float, 4> fill;
};

template <typename T, typename Map, typename Sample>
void fill_between(const Image& image, const Map& map, const Sample& sample, Target& target) {
  const bool alpha = std::is_same_v<T, uint8_t> && image.order() == Order::kRgba;
  const int channels = image.channels();
  std::array<T, 4> fill{};
  std::transform(target.fill.begin(), target.fill.end(), fill.begin(), [](float value) {
    return narrowed<T>(value);
  });
  for (int y = 0; y < target.image.height(); ++y) {
    T* to = target.image.row<T>(y);
    for (int x = 0; x < target.image.width(); ++x, to += channels) {
      const PointF point = at(map, x + 0.5, y + 0.5);
      if (!inside(image, point)) {
        std::copy_n(fill.begin(), channels, to);
        continue;
      }
      sample(image, point, to);
      if constexpr (std::is_same_v<T, uint8_t>) {
        for (int c = 0; alpha && c < 3; ++c) {
          to[c] = detail::unpremultiplied(to[c], to[3]);
        }
      }
    }
  }
}

template <typename T, typename Map>
void fill_smoothly(const Image& image,
                   const Map& map,
                   Interpolation interpolation,
                   Target& target) {
  if (interpolation == Interpolation::kBilinear) {
    fill_between<T>(image, map, sample_linear<T>, target);
  } else {
    fill_between<T>(image, map, sample_cubic<T>, target);
  }
}

/// place(x, y): row and column of the old pixel; beyond the image: the fill.
template <typename Place>
void fill_with_nearest(const Image& image, const Place& place, Target& target) {
  detail::with_pixel(image, [&](auto pixel) {
    const auto fill = detail::color_of<decltype(pixel)>(image.type(), target.fill);
    for (int y = 0; y < target.image.height(); ++y) {
      auto* to = target.image.row<decltype(pixel)>(y);
      for (int x = 0; x < target.image.width(); ++x) {
        const auto [row, column] = place(x, y);
        to[x] = row >= 0 && row < image.height() && column >= 0 && column < image.width()
                    ? image.row<decltype(pixel)>(static_cast<int>(row))[column]
                    : fill;
      }
    }
  });
}

using Place = std::pair<int64_t, int64_t>;

Place pixel_at(const Image& image, PointF point) {
  return inside(image, point) ? Place{static_cast<int64_t>(point.y), static_cast<int64_t>(point.x)}
                              : Place{-1, -1};
}

/// Pillow's ways: columns and rows alone; 16 bits of fraction where that reaches; f64.
void nearest(const Image& image, const Affine& m, Target& target) {
  const Size size = target.image.size();
  const bool straight = m[1] == 0 && m[3] == 0;
  const auto reaches = [&](double x, double y) {
    const PointF point = at(m, x, y);
    return std::abs(point.x) < 32768 && std::abs(point.y) < 32768;
  };
  if (!straight && reaches(0, 0) && reaches(size.width, size.height) && reaches(0, size.height) &&
      reaches(size.width, 0)) {
    const auto fixed = [](double value) {
      return static_cast<int64_t>(std::floor(value * 65536 + 0.5));
    };
    const std::array<int64_t, 6> f{fixed(m[0]),
                                   fixed(m[1]),
                                   fixed(m[2] + m[0] * 0.5 + m[1] * 0.5),
                                   fixed(m[3]),
                                   fixed(m[4]),
                                   fixed(m[5] + m[3] * 0.5 + m[4] * 0.5)};
    return fill_with_nearest(
        image,
        [&](int x, int y) -> Place {
          return {(f[5] + x * f[3] + y * f[4]) >> 16, (f[2] + x * f[0] + y * f[1]) >> 16};
        },
        target);
  }
  // Sums, not products, as there.
  std::vector<double> across(static_cast<size_t>(size.width)),
      down(static_cast<size_t>(size.height));
  const auto steps = [](std::vector<double>& places, double begin, double step) {
    for (double& place : places) {
      place = begin;
      begin += step;
    }
  };
  if (straight) {
    steps(across, m[2] + m[0] * 0.5, m[0]);
    steps(down, m[5] + m[4] * 0.5, m[4]);
    return fill_with_nearest(
        image,
        [&](int x, int y) {
          return pixel_at(image, {across[static_cast<size_t>(x)], down[static_cast<size_t>(y)]});
        },
        target);
  }
  fill_with_nearest(
      image, [&](int x, int y) { return pixel_at(image, at(m, x + 0.5, y + 0.5)); }, target);
}

void nearest(const Image& image, const Perspective& m, Target& target) {
  fill_with_nearest(
      image, [&](int x, int y) { return pixel_at(image, at(m, x + 0.5, y + 0.5)); }, target);
}

template <typename Map>
Image warp(const Image& image,
           Size size,
           const Map& map,
           Interpolation interpolation,
           const Fill& fill,
           const char* where) {
  ARGOSY_CHECK(!image.empty(), where, "the image is empty");
  ARGOSY_CHECK(interpolation <= Interpolation::kBicubic,
               where,
               "expected nearest, bilinear or bicubic, got {}",
               to_string(interpolation));
  Target target{Image(size, image.order(), image.type()), fill.of(image)};
  if (interpolation == Interpolation::kNearest) {
    nearest(image, map, target);
  } else if (image.type() == Type::kF32) {
    fill_smoothly<float>(image, map, interpolation, target);
  } else if (image.order() == Order::kRgba) {
    fill_smoothly<uint8_t>(detail::premultiply(image), map, interpolation, target);
  } else {
    fill_smoothly<uint8_t>(image, map, interpolation, target);
  }
  return std::move(target.image);
}

}  // namespace

Image rotate(const Image& image, double degrees, const RotateOptions& options) {
  const detail::Rotation rotation = detail::rotation_of(image.size(), degrees, options);
  if (rotation.quarter_turns) {
    return rotate90(image, *rotation.quarter_turns);
  }
  return warp(
      image, rotation.size, rotation.map, options.interpolation, options.fill, "image.rotate");
}

Image affine(const Image& image, const AffineOptions& options) {
  return warp(image,
              image.size(),
              detail::inverse_affine(image.size(), options),
              options.interpolation,
              options.fill,
              "image.affine");
}

Image perspective(const Image& image,
                  const std::array<PointF, 4>& start,
                  const std::array<PointF, 4>& end,
                  const WarpOptions& options) {
  return warp(image,
              image.size(),
              detail::inverse_perspective(start, end),
              options.interpolation,
              options.fill,
              "image.perspective");
}

}  // namespace argosy::image
