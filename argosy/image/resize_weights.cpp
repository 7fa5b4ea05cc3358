#include "argosy/image/resize_weights.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "argosy/base/check.h"

namespace argosy::image::detail {
namespace {

/// More is no picture: 2^25 weights are 256 MB.
constexpr int64_t kMostWeights = int64_t{1} << 25;

// The filters of Pillow's Resample.c, in its order of operations: the bits depend on it.

double box(double x) {
  return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

double triangle(double x) {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

double hamming(double x) {
  x = std::abs(x);
  if (x == 0.0) {
    return 1.0;
  }
  if (x >= 1.0) {
    return 0.0;
  }
  x *= std::numbers::pi;
  return std::sin(x) / x * (0.54F + 0.46F * std::cos(x));  // in f32, as there
}

double cubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1.0) {
    return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  }
  return x < 2.0 ? (((x - 5) * x + 8) * x - 4) * kA : 0.0;
}

double sinc(double x) {
  if (x == 0.0) {
    return 1.0;
  }
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos(double x) {
  return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

void allot(int to, int64_t most, Taps<double>& taps) {
  ARGOSY_CHECK(to * most <= kMostWeights,
               "image.resize",
               "{} pixels from {} each: that is more than {} weights. Resize in two steps.",
               to,
               most,
               kMostWeights);
  taps.most = static_cast<int>(most);
  taps.first.resize(static_cast<size_t>(to));
  taps.count.resize(static_cast<size_t>(to));
  taps.weights.assign(static_cast<size_t>(to * most), 0.0);
}

/// Cut off, also below 0, as there.
int whole(double value) {
  return static_cast<int>(value);
}

/// The filter stretched by as much as the picture shrinks.
template <typename Filter>
void antialiased(
    int from, float begin, float end, int to, double reach, Filter filter, Taps<double>& taps) {
  const double scale = static_cast<double>(end - begin) / to;
  const double stretch = std::max(scale, 1.0);
  const double support = reach * stretch;
  allot(to, std::min<int64_t>(static_cast<int64_t>(std::ceil(support)) * 2 + 1, from), taps);
  const double shrink = 1.0 / stretch;
  double* weights = taps.weights.data();
  for (int i = 0; i < to; ++i, weights += taps.most) {
    const double center = begin + (i + 0.5) * scale;
    const int first = std::max(0, whole(center - support + 0.5));
    const int count = std::min(from, whole(center + support + 0.5)) - first;
    double sum = 0;
    for (int k = 0; k < count; ++k) {
      weights[k] = filter((k + first - center + 0.5) * shrink);
      sum += weights[k];
    }
    if (sum != 0.0) {
      for (int k = 0; k < count; ++k) {
        weights[k] /= sum;
      }
    }
    taps.first[static_cast<size_t>(i)] = first;
    taps.count[static_cast<size_t>(i)] = count;
  }
}

/// The pixel under the centre. The sum is Pillow's: a product would round otherwise.
void nearest(int from, float begin, float end, int to, Taps<double>& taps) {
  allot(to, 1, taps);
  const double scale = static_cast<double>(end - begin) / to;
  double center = begin + scale * 0.5;
  for (size_t i = 0; i < taps.first.size(); ++i, center += scale) {
    taps.first[i] = std::clamp(static_cast<int>(center), 0, from - 1);
    taps.count[i] = 1;
    taps.weights[i] = 1.0;
  }
}

/// Adds a weight to old pixel `at`, or to the outermost one before it.
void add(Taps<double>& taps, int i, int from, int at, double weight) {
  const int first = taps.first[static_cast<size_t>(i)];
  const int place = std::clamp(at, 0, from - 1) - first;
  taps.weights[static_cast<size_t>(i) * static_cast<size_t>(taps.most) +
               static_cast<size_t>(place)] += weight;
  int& count = taps.count[static_cast<size_t>(i)];
  count = std::max(count, place + 1);
}

/// Two neighbours, weighed in f32 as torch does.
void two_neighbours(int from, float begin, float end, int to, Taps<double>& taps) {
  allot(to, std::min(2, from), taps);
  const float scale = (end - begin) / static_cast<float>(to);
  for (int i = 0; i < to; ++i) {
    const float at = std::max(0.0F, begin + scale * (static_cast<float>(i) + 0.5F) - 0.5F);
    const int first = std::min(static_cast<int>(at), from - 1);
    const float right = std::clamp(at - static_cast<float>(first), 0.0F, 1.0F);
    taps.first[static_cast<size_t>(i)] = std::min(first, from - taps.most);
    taps.count[static_cast<size_t>(i)] = 1;
    add(taps, i, from, first, 1.0F - right);
    add(taps, i, from, first + 1, right);
  }
}

/// Four neighbours; the outermost pixels stand for those beyond.
void four_neighbours(int from, float begin, float end, int to, Taps<double>& taps) {
  constexpr float kA = -0.75F;
  const auto near = [](float x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
  const auto far = [](float x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  allot(to, std::min(4, from), taps);
  const float scale = (end - begin) / static_cast<float>(to);
  for (int i = 0; i < to; ++i) {
    const float at = begin + scale * (static_cast<float>(i) + 0.5F) - 0.5F;
    const float floor = std::floor(at);
    const float t = at - floor;
    const int middle = static_cast<int>(floor);
    taps.first[static_cast<size_t>(i)] = std::clamp(middle - 1, 0, from - taps.most);
    taps.count[static_cast<size_t>(i)] = 1;
    add(taps, i, from, middle - 1, far(t + 1));
    add(taps, i, from, middle, near(t));
    add(taps, i, from, middle + 1, near(1 - t));
    add(taps, i, from, middle + 2, far(2 - t));
  }
}

}  // namespace

void make_taps(const Stretch& stretch, const ResizeOptions& options, Taps<double>& taps) {
  const auto [from, begin, end, to] = stretch;
  const bool smooth = options.antialias == Antialias::kOn;
  switch (options.interpolation) {
    case Interpolation::kNearest:
      return nearest(from, begin, end, to, taps);
    case Interpolation::kBilinear:
      return smooth ? antialiased(from, begin, end, to, 1.0, triangle, taps)
                    : two_neighbours(from, begin, end, to, taps);
    case Interpolation::kBicubic:
      return smooth ? antialiased(from, begin, end, to, 2.0, cubic, taps)
                    : four_neighbours(from, begin, end, to, taps);
    case Interpolation::kBox:
      return antialiased(from, begin, end, to, 0.5, box, taps);
    case Interpolation::kHamming:
      return antialiased(from, begin, end, to, 1.0, hamming, taps);
    case Interpolation::kLanczos:
      return antialiased(from, begin, end, to, 3.0, lanczos, taps);
  }
}

void to_fixed(const Taps<double>& taps, Taps<int32_t>& fixed) {
  constexpr double kOne = 1 << kFractionBits;
  fixed.first = taps.first;
  fixed.count = taps.count;
  fixed.most = taps.most;
  fixed.weights.resize(taps.weights.size());
  std::transform(
      taps.weights.begin(), taps.weights.end(), fixed.weights.begin(), [](double weight) {
        return static_cast<int32_t>((weight < 0 ? -0.5 : 0.5) + weight * kOne);
      });
}

void keep(int begin, int end, Taps<int32_t>& taps) {
  const auto cut = [](auto& values, ptrdiff_t from, ptrdiff_t to) {
    values.erase(values.begin() + to, values.end());
    values.erase(values.begin(), values.begin() + from);
  };
  cut(taps.first, begin, end);
  cut(taps.count, begin, end);
  cut(taps.weights, ptrdiff_t{begin} * taps.most, ptrdiff_t{end} * taps.most);
}

void reverse(Taps<int32_t>& taps) {
  std::reverse(taps.first.begin(), taps.first.end());
  std::reverse(taps.count.begin(), taps.count.end());
  const auto row = [&](int i) { return taps.weights.begin() + ptrdiff_t{i} * taps.most; };
  for (int i = 0, j = taps.size() - 1; i < j; ++i, --j) {
    std::swap_ranges(row(i), row(i + 1), row(j));
  }
}

}  // namespace argosy::image::detail
