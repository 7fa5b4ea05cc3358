#include "argosy/optim/kernels/norm.h"

#include <cmath>
#include <limits>

#include "argosy/base/simd.h"

namespace argosy::optim::kernels {
namespace {

template <typename T>
ARGOSY_KERNEL_INLINE double block_sum(const T* data) {
  constexpr std::size_t kQuarter = kSquaresBlock / 4;
  double sums[kQuarter];  // the first two steps of fold()
  for (std::size_t i = 0; i < kQuarter; ++i) {
    const double a = data[i], b = data[i + kQuarter];
    const double c = data[i + 2 * kQuarter], d = data[i + 3 * kQuarter];
    sums[i] = (a * a + c * c) + (b * b + d * d);
  }
  return fold<kQuarter>(sums);
}

template <typename T>
ARGOSY_KERNEL_INLINE ExactSum sum_loop(const T* data, std::size_t count) {
  ExactSum sum;
  const std::size_t whole = count / kSquaresBlock * kSquaresBlock;
  for (std::size_t begin = 0; begin < whole; begin += kSquaresBlock) {
    sum.add(block_sum(data + begin));
  }
  if (whole < count) {
    T rest[kSquaresBlock] = {};
    for (std::size_t i = whole; i < count; ++i) {
      rest[i - whole] = data[i];
    }
    sum.add(block_sum(rest));
  }
  return sum;
}

template <typename T>
ARGOSY_KERNEL_INLINE double max_loop(const T* data, std::size_t count) {
  T top = 0;
  bool nan = false;
  for (std::size_t i = 0; i < count; ++i) {
    const T value = data[i] < T(0) ? -data[i] : data[i];
    nan |= value != value;
    top = value > top ? value : top;
  }
  return nan ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(top);
}

// 0 * x is 0 unless x is NaN or infinite. In lanes, which vectorise without -ffast-math.
template <typename T>
ARGOSY_KERNEL_INLINE bool finite_loop(const T* data, std::size_t count) {
  constexpr std::size_t kWide = 64;
  T lanes[kWide] = {};
  std::size_t i = 0;
  for (; i + kWide <= count; i += kWide) {
    for (std::size_t lane = 0; lane < kWide; ++lane) {
      lanes[lane] += data[i + lane] * T(0);
    }
  }
  for (; i < count; ++i) {
    lanes[0] += data[i] * T(0);
  }
  T total = 0;
  for (const T lane : lanes) {
    total += lane;
  }
  return total == T(0);
}

template <typename T>
ARGOSY_KERNEL_INLINE void scale_loop(T* data, std::size_t count, T factor) {
  for (std::size_t i = 0; i < count; ++i) {
    data[i] *= factor;
  }
}

template <typename T>
ARGOSY_KERNEL_INLINE bool unscale_loop(T* data, std::size_t count, T factor) {
  constexpr T kMost = std::numeric_limits<T>::max();
  bool odd = false;
  for (std::size_t i = 0; i < count; ++i) {
    const T value = data[i];
    odd |= !(value <= kMost && value >= -kMost);  // NaN is neither
    data[i] = value * factor;
  }
  return odd;
}

template <typename T>
ARGOSY_KERNEL_INLINE void clamp_loop(T* data, std::size_t count, T low, T high) {
  for (std::size_t i = 0; i < count; ++i) {
    T value = data[i] < low ? low : data[i];
    data[i] = value > high ? high : value;
  }
}

ARGOSY_KERNEL ExactSum sum_f32(const float* d, std::size_t n) {
  return sum_loop(d, n);
}
ARGOSY_KERNEL ExactSum sum_f64(const double* d, std::size_t n) {
  return sum_loop(d, n);
}
ARGOSY_KERNEL double max_f32(const float* d, std::size_t n) {
  return max_loop(d, n);
}
ARGOSY_KERNEL double max_f64(const double* d, std::size_t n) {
  return max_loop(d, n);
}
ARGOSY_KERNEL bool finite_f32(const float* d, std::size_t n) {
  return finite_loop(d, n);
}
ARGOSY_KERNEL bool finite_f64(const double* d, std::size_t n) {
  return finite_loop(d, n);
}
ARGOSY_KERNEL void scale_f32(float* d, std::size_t n, float f) {
  scale_loop(d, n, f);
}
ARGOSY_KERNEL void scale_f64(double* d, std::size_t n, double f) {
  scale_loop(d, n, f);
}
ARGOSY_KERNEL bool unscale_f32(float* d, std::size_t n, float f) {
  return unscale_loop(d, n, f);
}
ARGOSY_KERNEL bool unscale_f64(double* d, std::size_t n, double f) {
  return unscale_loop(d, n, f);
}
ARGOSY_KERNEL void clamp_f32(float* d, std::size_t n, float a, float b) {
  clamp_loop(d, n, a, b);
}
ARGOSY_KERNEL void clamp_f64(double* d, std::size_t n, double a, double b) {
  clamp_loop(d, n, a, b);
}

}  // namespace

ExactSum sum_of_squares(const float* data, std::size_t count) {
  return sum_f32(data, count);
}
ExactSum sum_of_squares(const double* data, std::size_t count) {
  return sum_f64(data, count);
}
double max_abs(const float* data, std::size_t count) {
  return max_f32(data, count);
}
double max_abs(const double* data, std::size_t count) {
  return max_f64(data, count);
}
bool all_finite(const float* data, std::size_t count) {
  return finite_f32(data, count);
}
bool all_finite(const double* data, std::size_t count) {
  return finite_f64(data, count);
}
void scale(float* data, std::size_t count, double factor) {
  scale_f32(data, count, static_cast<float>(factor));
}
void scale(double* data, std::size_t count, double factor) {
  scale_f64(data, count, factor);
}
bool unscale(float* data, std::size_t count, float factor) {
  return unscale_f32(data, count, factor);
}
bool unscale(double* data, std::size_t count, float factor) {
  return unscale_f64(data, count, factor);
}
void clamp(float* data, std::size_t count, double low, double high) {
  clamp_f32(data, count, static_cast<float>(low), static_cast<float>(high));
}
void clamp(double* data, std::size_t count, double low, double high) {
  clamp_f64(data, count, low, high);
}

}  // namespace argosy::optim::kernels
