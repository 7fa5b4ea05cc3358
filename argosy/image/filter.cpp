#include "argosy/image/filter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/image/color_pixel.h"
#include "argosy/image/filter_kernels.h"

namespace argosy::image {
namespace {

constexpr auto kBlur = "image.gaussian_blur";

/// Weights of an axis, which sum to 1.
std::vector<float> gaussian(int kernel, int size, double sigma) {
  ARGOSY_CHECK(kernel > 0 && kernel % 2 == 1 && kernel / 2 < size,
               kBlur,
               "expected an odd kernel of at most {} for {} pixels, got {}",
               2 * int64_t{size} - 1,
               size,
               kernel);
  ARGOSY_CHECK(
      sigma >= 0 && std::isfinite(sigma), kBlur, "expected a sigma from 0 on, got {}", sigma);
  sigma = sigma == 0 ? kernel * 0.15 + 0.35 : sigma;
  std::vector<float> weights(static_cast<size_t>(kernel));
  const int reach = kernel / 2;
  const auto height = [&](int at) { return std::exp(-0.5 * (at / sigma) * (at / sigma)); };
  double sum = 0;
  for (int at = -reach; at <= reach; ++at) {
    sum += height(at);
  }
  for (int at = -reach; float& weight : weights) {
    weight = static_cast<float>(height(at++) / sum);
  }
  return weights;
}

/// Beyond the border lies the mirror image, without the border itself.
int reflected(int place, int size) {
  place = std::abs(place);
  return place < size ? place : 2 * size - 2 - place;
}

void to_floats(const Image& image, int y, float* floats) {
  const int64_t n = int64_t{image.width()} * image.channels();
  if (image.type() == Type::kU8) {
    detail::widen(image.row<uint8_t>(y), n, floats);
  } else {
    std::memcpy(floats, image.row<float>(y), static_cast<size_t>(n) * sizeof(float));
  }
}

/// Each row blurred along itself.
Image blurred_across(const Image& image, const std::vector<float>& weights) {
  const int channels = image.channels(), border = static_cast<int>(weights.size()) / 2;
  const int64_t n = int64_t{image.width()} * channels;
  std::vector<float> padded(static_cast<size_t>(n) +
                            weights.size() * static_cast<size_t>(channels));
  float* const row = padded.data() + int64_t{border} * channels;
  Image result(image.size(), image.order(), Type::kF32);
  for (int y = 0; y < image.height(); ++y) {
    to_floats(image, y, row);
    for (int x = 1; x <= border; ++x) {
      for (const int place : {-x, image.width() - 1 + x}) {
        std::copy_n(row + int64_t{reflected(place, image.width())} * channels,
                    channels,
                    row + int64_t{place} * channels);
      }
    }
    float* const sums = result.row<float>(y);
    std::fill_n(sums, n, 0.0F);
    for (size_t k = 0; k < weights.size(); ++k) {
      detail::add_weighted(padded.data() + static_cast<int64_t>(k) * channels, weights[k], n, sums);
    }
  }
  return result;
}

/// The value that stands in the middle of 3 × 3 of them after smoothing, in Pillow's order.
template <typename T>
float smooth(const T* upper, const T* middle, const T* lower, int step) {
  constexpr float kOne = 1.0F / 13.0F, kFive = 5.0F / 13.0F;
  const auto of_three = [&](const T* row, float at_middle) {
    return static_cast<float>(row[-step]) * kOne + static_cast<float>(row[0]) * at_middle +
           static_cast<float>(row[step]) * kOne;
  };
  float sum = std::is_same_v<T, uint8_t> ? 0.5F : 0.0F;  // rounds
  sum += of_three(lower, kOne);
  sum += of_three(middle, kFive);
  sum += of_three(upper, kOne);
  return sum;
}

/// The rows of an image, blended with what smoothing makes of them.
template <typename T>
void sharpen(const Image& image, double factor, Image& result) {
  using Factor = std::conditional_t<std::is_same_v<T, uint8_t>, float, double>;
  const auto by = static_cast<Factor>(factor);
  const int channels = image.channels(), colors = detail::colors_of(image);
  const auto change = [&](int y, int begin, int end, const auto& dull_at) {
    const T* from = image.row<T>(y);
    T* to = result.row<T>(y);
    for (int x = begin; x < end; ++x) {
      for (int c = 0; c < colors; ++c) {
        const int i = x * channels + c;
        to[i] = detail::blend(static_cast<T>(dull_at(i)), from[i], by);
      }
    }
  };
  for (int y = 1; y + 1 < image.height(); ++y) {
    const T *upper = image.row<T>(y - 1), *middle = image.row<T>(y), *lower = image.row<T>(y + 1);
    change(y, 1, image.width() - 1, [&](int i) {
      return smooth(upper + i, middle + i, lower + i, channels);
    });
  }
}

}  // namespace

Image gaussian_blur(const Image& image, Size kernel, const Sigma& sigma) {
  ARGOSY_CHECK(!image.empty(), kBlur, "the image is empty");
  const std::vector<float> down = gaussian(kernel.height, image.height(), sigma.y);
  const std::vector<float> across = gaussian(kernel.width, image.width(), sigma.x);
  const Image rows = blurred_across(image, across);
  const int64_t n = int64_t{image.width()} * image.channels();
  Image result(image.size(), image.order(), image.type());
  std::vector<float> sums(static_cast<size_t>(n));
  for (int y = 0; y < image.height(); ++y) {
    std::fill(sums.begin(), sums.end(), 0.0F);
    for (int k = 0; k < kernel.height; ++k) {
      const int from = reflected(y + k - kernel.height / 2, image.height());
      detail::add_weighted(rows.row<float>(from), down[static_cast<size_t>(k)], n, sums.data());
    }
    if (image.type() == Type::kU8) {
      detail::round_to_u8(sums.data(), n, result.row<uint8_t>(y));
    } else {
      std::copy(sums.begin(), sums.end(), result.row<float>(y));
    }
  }
  return result;
}

Image gaussian_blur(const Image& image, int kernel, double sigma) {
  return gaussian_blur(image, {kernel, kernel}, {sigma, sigma});
}

Image adjust_sharpness(const Image& image, double factor) {
  ARGOSY_CHECK(!image.empty(), "image.adjust_sharpness", "the image is empty");
  ARGOSY_CHECK(factor >= 0 && std::isfinite(factor),
               "image.adjust_sharpness",
               "expected a factor from 0 on, got {}",
               factor);
  Image result = image;
  detail::with_type(image, [&](auto type) { sharpen<decltype(type)>(image, factor, result); });
  return result;
}

}  // namespace argosy::image
