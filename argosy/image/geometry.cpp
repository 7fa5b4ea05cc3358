#include "argosy/image/geometry.h"

#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/image/geometry_pixel.h"

namespace argosy::image {
namespace {

using detail::check_not_empty;
using detail::Pixel;
using detail::with_pixel;

/// Which old pixel each new one of an axis is; -1: none, the fill.
std::vector<int> places(int size, int before, int after, PadMode mode) {
  const auto at = [&](int64_t i) -> int64_t {
    if (i >= 0 && i < size) {
      return i;
    }
    switch (mode) {
      case PadMode::kConstant:
        return -1;
      case PadMode::kEdge:
        return i < 0 ? 0 : size - 1;
      case PadMode::kReflect: {
        const int64_t period = std::max<int64_t>(1, 2 * (int64_t{size} - 1));
        const int64_t k = (i % period + period) % period;
        return k < size ? k : period - k;
      }
      case PadMode::kSymmetric: {
        const int64_t period = 2 * int64_t{size};
        const int64_t k = (i % period + period) % period;
        return k < size ? k : period - 1 - k;
      }
    }
    return -1;
  };
  std::vector<int> result;
  result.reserve(static_cast<size_t>(int64_t{size} + before + after));
  for (int64_t i = -int64_t{before}; i < int64_t{size} + after; ++i) {
    result.push_back(static_cast<int>(at(i)));
  }
  return result;
}

}  // namespace

Fill::Fill(std::initializer_list<double> values) : count_(static_cast<int>(values.size())) {
  ARGOSY_CHECK(values.size() >= 1 && values.size() <= 4,
               "image.Fill",
               "expected 1 to 4 values, got {}",
               values.size());
  std::transform(values.begin(), values.end(), values_.begin(), [](double value) {
    return static_cast<float>(value);
  });
  if (count_ == 1) {
    values_.fill(values_[0]);
  }
}

std::array<float, 4> Fill::of(const Image& image) const {
  ARGOSY_CHECK(count_ == 1 || count_ == image.channels(),
               "image.Fill",
               "expected 1 or {} values for {}, got {}",
               image.channels(),
               to_string(image.order()),
               count_);
  return values_;
}

Image crop(const Image& image, Box box) {
  ARGOSY_CHECK(
      box.height > 0 && box.width > 0 && box.top >= 0 && box.left >= 0 &&
          int64_t{box.top} + box.height <= image.height() &&
          int64_t{box.left} + box.width <= image.width(),
      "image.crop",
      "expected a box inside of {} x {} pixels, got {} x {} at row {}, column {}. pad() the "
      "image first where a box may reach out of it.",
      image.height(),
      image.width(),
      box.height,
      box.width,
      box.top,
      box.left);
  Image result({box.height, box.width}, image.order(), image.type());
  const size_t pixel = static_cast<size_t>(image.channels()) * bytes_of(image.type());
  for (int y = 0; y < box.height; ++y) {
    std::memcpy(result.row<std::byte>(y),
                image.row<std::byte>(box.top + y) + static_cast<size_t>(box.left) * pixel,
                result.row_bytes());
  }
  return result;
}

Box center_box(Size image, Size size) {
  // Where it reaches out, more is missing at the end; else halves go to the even number, as round()
  // does in Python.
  const auto begin = [](int have, int want) {
    if (want > have) {
      return -static_cast<int>((int64_t{want} - have) / 2);
    }
    return static_cast<int>(std::nearbyint((have - want) / 2.0));
  };
  return {
      begin(image.height, size.height), begin(image.width, size.width), size.height, size.width};
}

Image center_crop(const Image& image, Size size) {
  check_not_empty(image, "image.center_crop");
  ARGOSY_CHECK(size.height > 0 && size.width > 0,
               "image.center_crop",
               "expected a size of at least 1 x 1, got {} x {}",
               size.height,
               size.width);
  const Box box = center_box(image.size(), size);
  return pad(image,
             {-box.left,
              -box.top,
              size.width + box.left - image.width(),
              size.height + box.top - image.height()});
}

Image erase(const Image& image, Box box, const Fill& fill) {
  check_not_empty(image, "image.erase");
  const std::array<float, 4> values = fill.of(image);
  Image result = image;
  const auto begin = [](int at) { return std::max(0, at); };
  const auto end = [](int at, int length, int size) {
    return static_cast<int>(std::min<int64_t>(size, int64_t{at} + length));
  };
  with_pixel(image, [&](auto pixel) {
    const auto color = detail::color_of<decltype(pixel)>(image.type(), values);
    for (int y = begin(box.top); y < end(box.top, box.height, image.height()); ++y) {
      auto* row = result.row<decltype(pixel)>(y);
      for (int x = begin(box.left); x < end(box.left, box.width, image.width()); ++x) {
        row[x] = color;
      }
    }
  });
  return result;
}

Image flip_horizontally(const Image& image) {
  check_not_empty(image, "image.flip_horizontally");
  Image result(image.size(), image.order(), image.type());
  with_pixel(image, [&](auto pixel) {
    for (int y = 0; y < image.height(); ++y) {
      const auto* from = image.row<decltype(pixel)>(y);
      std::reverse_copy(from, from + image.width(), result.row<decltype(pixel)>(y));
    }
  });
  return result;
}

Image flip_vertically(const Image& image) {
  check_not_empty(image, "image.flip_vertically");
  Image result(image.size(), image.order(), image.type());
  for (int y = 0; y < image.height(); ++y) {
    std::memcpy(
        result.row<std::byte>(image.height() - 1 - y), image.row<std::byte>(y), image.row_bytes());
  }
  return result;
}

Image transpose(const Image& image) {
  check_not_empty(image, "image.transpose");
  Image result({image.width(), image.height()}, image.order(), image.type());
  with_pixel(image, [&](auto pixel) {
    for (int y = 0; y < image.height(); ++y) {
      const auto* from = image.row<decltype(pixel)>(y);
      for (int x = 0; x < image.width(); ++x) {
        result.row<decltype(pixel)>(x)[y] = from[x];
      }
    }
  });
  return result;
}

Image rotate90(const Image& image, int quarter_turns) {
  switch ((quarter_turns % 4 + 4) % 4) {
    case 1:
      return flip_vertically(transpose(image));
    case 2:
      return flip_vertically(flip_horizontally(image));
    case 3:
      return transpose(flip_vertically(image));
    default:
      check_not_empty(image, "image.rotate90");
      return image;
  }
}

Image pad(const Image& image, Padding padding, const PadOptions& options) {
  check_not_empty(image, "image.pad");
  const int64_t height = int64_t{image.height()} + padding.top + padding.bottom;
  const int64_t width = int64_t{image.width()} + padding.left + padding.right;
  const auto keeps = [](int size, int before, int after) {
    return int64_t{size} + std::min(0, before) + std::min(0, after) > 0;
  };
  ARGOSY_CHECK(keeps(image.height(), padding.top, padding.bottom) &&
                   keeps(image.width(), padding.left, padding.right),
               "image.pad",
               "nothing is left of {} x {} pixels: padding left {}, top {}, right {}, bottom {}",
               image.height(),
               image.width(),
               padding.left,
               padding.top,
               padding.right,
               padding.bottom);
  ARGOSY_CHECK(height <= Image::kMostPixels && width <= Image::kMostPixels &&
                   height * width <= Image::kMostPixels,
               "image.pad",
               "expected at most {} pixels, got {} x {}",
               Image::kMostPixels,
               height,
               width);
  if (std::min({padding.left, padding.top, padding.right, padding.bottom}) < 0) {
    // Crop first: what is cut off is not reflected.
    const auto cut = [](int border) { return std::max(0, -border); };
    const auto grow = [](int border) { return std::max(0, border); };
    const Image rest = crop(image,
                            {cut(padding.top),
                             cut(padding.left),
                             image.height() - cut(padding.top) - cut(padding.bottom),
                             image.width() - cut(padding.left) - cut(padding.right)});
    return pad(rest,
               {grow(padding.left), grow(padding.top), grow(padding.right), grow(padding.bottom)},
               options);
  }
  const std::array<float, 4> values = options.fill.of(image);
  const std::vector<int> rows = places(image.height(), padding.top, padding.bottom, options.mode);
  const std::vector<int> columns = places(image.width(), padding.left, padding.right, options.mode);
  Image result({static_cast<int>(height), static_cast<int>(width)}, image.order(), image.type());
  with_pixel(image, [&](auto pixel) {
    const auto color = detail::color_of<decltype(pixel)>(image.type(), values);
    for (int y = 0; y < result.height(); ++y) {
      auto* to = result.row<decltype(pixel)>(y);
      const int old = rows[static_cast<size_t>(y)];
      if (old < 0) {
        std::fill(to, to + result.width(), color);
        continue;
      }
      const auto* from = image.row<decltype(pixel)>(old);
      const auto border = [&](int begin, int end) {
        for (int x = begin; x < end; ++x) {
          const int place = columns[static_cast<size_t>(x)];
          to[x] = place < 0 ? color : from[place];
        }
      };
      border(0, padding.left);
      std::memcpy(to + padding.left, from, image.row_bytes());
      border(padding.left + image.width(), result.width());
    }
  });
  return result;
}

}  // namespace argosy::image
