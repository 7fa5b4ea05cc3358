#include "argosy/image/color.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "argosy/base/check.h"
#include "argosy/image/color_pixel.h"
#include "argosy/image/geometry_pixel.h"

namespace argosy::image {
namespace {

using detail::check_not_empty;
using detail::for_each_pixel;
using detail::kWhite;
using detail::Places;
using detail::places_of;
using detail::with_type;

using Table = std::array<uint8_t, 256>;
using Tables = std::array<Table, 3>;

void check_factor(const Image& image, double factor, const char* where) {
  check_not_empty(image, where);
  ARGOSY_CHECK(
      factor >= 0 && std::isfinite(factor), where, "expected a factor from 0 on, got {}", factor);
}

void check_u8(const Image& image, const char* where) {
  check_not_empty(image, where);
  ARGOSY_CHECK(image.type() == Type::kU8, where, "expected u8, got f32. to_u8() it first.");
}

uint8_t clamped(double value) {
  return static_cast<uint8_t>(value >= 255 ? 255 : value > 0 ? value : 0);
}

/// f(0) … f(255).
template <typename F>
Table table_of(const F& f) {
  Table table{};
  for (int i = 0; i < 256; ++i) {
    table[static_cast<size_t>(i)] = f(i);
  }
  return table;
}

/// Each color's values by the table of its channel.
Image looked_up(const Image& image, const Tables& tables) {
  Image result = image;
  const int colors = detail::colors_of(image);
  for_each_pixel<uint8_t>(image, result, [&](const uint8_t* from, uint8_t* to) {
    for (int c = 0; c < colors; ++c) {
      to[c] = tables[static_cast<size_t>(c)][from[c]];
    }
  });
  return result;
}

Image looked_up(const Image& image, const Table& table) {
  if (image.order() == Order::kRgba) {
    return looked_up(image, {table, table, table});
  }
  Image result(image.size(), image.order());
  std::transform(image.row<uint8_t>(0),
                 image.row<uint8_t>(0) + image.total_bytes(),
                 result.row<uint8_t>(0),
                 [&](uint8_t value) { return table[value]; });
  return result;
}

/// f of each color's values.
template <typename F>
Image changed_f32(const Image& image, const F& f) {
  Image result = image;
  const int colors = detail::colors_of(image);
  for_each_pixel<float>(image, result, [&](const float* from, float* to) {
    for (int c = 0; c < colors; ++c) {
      to[c] = f(from[c]);
    }
  });
  return result;
}

template <typename T>
T gray_at(const T* pixel, const Places& places) {
  return detail::gray_of(pixel[places.red], pixel[places.green], pixel[places.blue]);
}

/// gray(pixel) of each, summed in f64.
template <typename T>
double mean_gray(const Image& image) {
  const Places places = places_of(image.order());
  const bool is_gray = image.order() == Order::kGray;
  double total = 0;
  for (int y = 0; y < image.height(); ++y) {
    const T* from = image.row<T>(y);
    double sum = 0;
    for (int x = 0; x < image.width(); ++x, from += image.channels()) {
      sum += is_gray ? *from : gray_at(from, places);
    }
    total += sum;
  }
  return total / (static_cast<double>(image.height()) * image.width());
}

using Counts = std::array<int64_t, 256>;

std::array<Counts, 3> histograms(const Image& image) {
  std::array<Counts, 3> counts{};
  const int colors = detail::colors_of(image);
  for (int y = 0; y < image.height(); ++y) {
    const auto* from = image.row<uint8_t>(y);
    for (int x = 0; x < image.width(); ++x, from += image.channels()) {
      for (int c = 0; c < colors; ++c) {
        ++counts[static_cast<size_t>(c)][from[c]];
      }
    }
  }
  return counts;
}

/// Pillow's ImageOps.autocontrast.
Table stretching(const Counts& counts) {
  const auto some = [](int64_t count) { return count != 0; };
  const auto low = std::find_if(counts.begin(), counts.end(), some) - counts.begin();
  const auto high = 255 - (std::find_if(counts.rbegin(), counts.rend(), some) - counts.rbegin());
  if (high <= low) {
    return table_of([](int i) { return static_cast<uint8_t>(i); });
  }
  const double scale = 255.0 / static_cast<double>(high - low);
  const double offset = static_cast<double>(-low) * scale;
  return table_of([&](int i) { return clamped(i * scale + offset); });
}

/// Pillow's ImageOps.equalize.
Table spreading(const Counts& counts) {
  int64_t sum = 0, last = 0, kinds = 0;
  for (const int64_t count : counts) {
    sum += count;
    last = count != 0 ? count : last;
    kinds += count != 0 ? 1 : 0;
  }
  const int64_t step = (sum - last) / 255;
  if (kinds <= 1 || step == 0) {
    return table_of([](int i) { return static_cast<uint8_t>(i); });
  }
  int64_t n = step / 2;
  return table_of([&](int i) {
    const int64_t value = n / step;
    n += counts[static_cast<size_t>(i)];
    return static_cast<uint8_t>(std::min<int64_t>(255, value));
  });
}

template <typename F>
Image by_histogram(const Image& image, const F& table) {
  Tables tables{};
  const std::array<Counts, 3> counts = histograms(image);
  for (int c = 0; c < detail::colors_of(image); ++c) {
    tables[static_cast<size_t>(c)] = table(counts[static_cast<size_t>(c)]);
  }
  return looked_up(image, tables);
}

}  // namespace

Image adjust_brightness(const Image& image, double factor) {
  check_factor(image, factor, "image.adjust_brightness");
  if (image.type() == Type::kF32) {
    return changed_f32(image, [&](float value) { return detail::blend(0.0F, value, factor); });
  }
  return looked_up(image, table_of([&](int i) {
                     return detail::blend(0, static_cast<uint8_t>(i), static_cast<float>(factor));
                   }));
}

Image adjust_contrast(const Image& image, double factor) {
  check_factor(image, factor, "image.adjust_contrast");
  if (image.type() == Type::kF32) {
    const auto mean = static_cast<float>(mean_gray<float>(image));
    return changed_f32(image, [&](float value) { return detail::blend(mean, value, factor); });
  }
  const auto mean = static_cast<uint8_t>(std::lround(mean_gray<uint8_t>(image)));
  return looked_up(image, table_of([&](int i) {
                     return detail::blend(
                         mean, static_cast<uint8_t>(i), static_cast<float>(factor));
                   }));
}

Image adjust_saturation(const Image& image, double factor) {
  check_factor(image, factor, "image.adjust_saturation");
  if (image.order() == Order::kGray) {
    return image;
  }
  Image result = image;
  const Places places = places_of(image.order());
  with_type(image, [&](auto type) {
    using T = decltype(type);
    using Factor = std::conditional_t<std::is_same_v<T, uint8_t>, float, double>;
    const auto by = static_cast<Factor>(factor);
    for_each_pixel<T>(image, result, [&](const T* from, T* to) {
      const T gray = gray_at(from, places);
      for (int c = 0; c < 3; ++c) {
        to[c] = detail::blend(gray, from[c], by);
      }
    });
  });
  return result;
}

Image adjust_gamma(const Image& image, double gamma, double gain) {
  check_not_empty(image, "image.adjust_gamma");
  ARGOSY_CHECK(gamma >= 0 && std::isfinite(gamma),
               "image.adjust_gamma",
               "expected a gamma from 0 on, got {}",
               gamma);
  if (image.type() == Type::kU8) {
    return looked_up(image, table_of([&](int i) {
                       return clamped((255 + 1 - 1e-3) * gain * std::pow(i / 255.0, gamma));
                     }));
  }
  return changed_f32(image, [&](float value) {
    return std::clamp(
        static_cast<float>(gain) * std::pow(value, static_cast<float>(gamma)), 0.0F, 1.0F);
  });
}

Image invert(const Image& image) {
  check_not_empty(image, "image.invert");
  if (image.type() == Type::kU8) {
    return looked_up(image, table_of([](int i) { return static_cast<uint8_t>(255 - i); }));
  }
  return changed_f32(image, [](float value) { return 1 - value; });
}

Image posterize(const Image& image, int bits) {
  check_u8(image, "image.posterize");
  ARGOSY_CHECK(bits >= 1 && bits <= 8, "image.posterize", "expected 1 to 8 bits, got {}", bits);
  const int mask = 256 - (1 << (8 - bits));
  return looked_up(image, table_of([&](int i) { return static_cast<uint8_t>(i & mask); }));
}

Image solarize(const Image& image, double threshold) {
  check_not_empty(image, "image.solarize");
  if (image.type() == Type::kU8) {
    return looked_up(
        image, table_of([&](int i) { return static_cast<uint8_t>(i < threshold ? i : 255 - i); }));
  }
  ARGOSY_CHECK(
      threshold <= 1,
      "image.solarize",
      "the threshold of f32 pixels, which are 0 to 1, must not be above 1, got {}. Say it as "
      "a part of 1, or solarize u8",
      threshold);
  return changed_f32(image, [from = static_cast<float>(threshold)](float value) {
    return value >= from ? 1 - value : value;
  });
}

Image autocontrast(const Image& image) {
  check_not_empty(image, "image.autocontrast");
  if (image.type() == Type::kU8) {
    return by_histogram(image, stretching);
  }
  const int colors = detail::colors_of(image);
  std::array<float, 4> low{}, scale{};
  for (int c = 0; c < colors; ++c) {
    float least = std::numeric_limits<float>::infinity(), most = -least;
    for (int64_t i = c; i < int64_t{image.height()} * image.width() * image.channels();
         i += image.channels()) {
      least = std::min(least, image.row<float>(0)[i]);
      most = std::max(most, image.row<float>(0)[i]);
    }
    const float stretch = 1.0F / (most - least);
    low[static_cast<size_t>(c)] = std::isfinite(stretch) ? least : 0;
    scale[static_cast<size_t>(c)] = std::isfinite(stretch) ? stretch : 1;
  }
  Image result = image;
  for_each_pixel<float>(image, result, [&](const float* from, float* to) {
    for (int c = 0; c < colors; ++c) {
      const auto at = static_cast<size_t>(c);
      to[c] = std::clamp((from[c] - low[at]) * scale[at], 0.0F, 1.0F);
    }
  });
  return result;
}

Image equalize(const Image& image) {
  check_u8(image, "image.equalize");
  return by_histogram(image, spreading);
}

Image to_grayscale(const Image& image, int channels) {
  ARGOSY_CHECK(channels == 1 || channels == 3,
               "image.to_grayscale",
               "expected 1 or 3 channels, got {}",
               channels);
  const Image gray = convert(image, Order::kGray);
  return channels == 1 ? gray
                       : convert(gray, image.order() == Order::kBgr ? Order::kBgr : Order::kRgb);
}

Image convert(const Image& image, Order order) {
  check_not_empty(image, "image.convert");
  if (image.order() == order) {
    return image;
  }
  Image result(image.size(), order, image.type());
  const Places in = places_of(image.order()), out = places_of(order);
  with_type(image, [&](auto type) {
    using T = decltype(type);
    for_each_pixel<T>(image, result, [&](const T* from, T* to) {
      if (order == Order::kGray) {
        *to = gray_at(from, in);
        return;
      }
      to[out.red] = from[in.red];
      to[out.green] = from[in.green];
      to[out.blue] = from[in.blue];
      if (out.alpha >= 0) {
        to[out.alpha] = kWhite<T>;
      }
    });
  });
  return result;
}

Image to_f32(const Image& image, Scale scale) {
  check_not_empty(image, "image.to_f32");
  if (image.type() == Type::kF32) {
    return image;
  }
  std::array<float, 256> table{};
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = static_cast<float>(i) / (scale == Scale::kUnit ? 255.0F : 1.0F);
  }
  Image result(image.size(), image.order(), Type::kF32);
  std::transform(image.row<uint8_t>(0),
                 image.row<uint8_t>(0) + image.total_bytes(),
                 result.row<float>(0),
                 [&](uint8_t value) { return table[value]; });
  return result;
}

Image to_u8(const Image& image, Scale scale) {
  check_not_empty(image, "image.to_u8");
  if (image.type() == Type::kU8) {
    return image;
  }
  Image result(image.size(), image.order());
  std::transform(image.row<float>(0),
                 image.row<float>(0) + result.total_bytes(),
                 result.row<uint8_t>(0),
                 [&](float value) {
                   return clamped(scale == Scale::kUnit ? value * 255.999F : std::nearbyint(value));
                 });
  return result;
}

}  // namespace argosy::image
