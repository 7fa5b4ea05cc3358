#include "argosy/vision/ops/norm_kernels.h"

#include <algorithm>
#include <array>

#include "argosy/vision/ops/lanes.h"

namespace argosy::vision::kernels {
namespace {

/// What relu lets through: nothing where its output or, the same, its input is not positive. NaN
/// passes.
ARGOSY_KERNEL_INLINE Floats through(const Floats& gradient, const Floats& value) {
  return value <= Floats{} ? Floats{} : gradient;
}

template <typename T>
ARGOSY_KERNEL_INLINE void add_moments_of(
    const T* x, const ImageShape& image, const float* shift, double* sums, double* squares) {
  const int64_t channels = image.channels;
  const int64_t positions = image.height * image.width;
  for (int64_t begin = 0; begin < positions; begin += kRun) {
    const int64_t end = std::min(positions, begin + kRun);
    for_channel_groups(channels, [&](auto lanes, auto groups, int64_t c) ARGOSY_KERNEL_LAMBDA {
      std::array<Floats, groups> from, sum{}, square{};
      for (std::size_t g = 0; g < groups; ++g) {
        lanes.load(shift + c + g * kLanes, from[g]);
      }
      for (int64_t i = begin * channels + c; i < end * channels; i += channels) {
        for (std::size_t g = 0; g < groups; ++g) {
          Floats value;
          lanes.load(x + i + g * kLanes, value);
          value -= from[g];
          sum[g] += value;
          square[g] += value * value;
        }
      }
      for (std::size_t g = 0; g < groups; ++g) {
        lanes.add(sum[g], sums + c + g * kLanes);
        lanes.add(square[g], squares + c + g * kLanes);
      }
    });
  }
}

template <typename T>
ARGOSY_KERNEL_INLINE void norm_relu_of(const T* x,
                                       const T* residual,
                                       const ImageShape& image,
                                       const float* scale,
                                       const float* offset,
                                       T* y) {
  const int64_t positions = image.height * image.width;
  for (int64_t i = 0; i < positions; ++i) {
    const int64_t at = i * image.channels;
    for_channels(image.channels, [&](auto lanes, int64_t c) ARGOSY_KERNEL_LAMBDA {
      Floats value, factor, summand;
      lanes.load(x + at + c, value);
      lanes.load(scale + c, factor);
      lanes.load(offset + c, summand);
      value = value * factor + summand;
      if (residual != nullptr) {
        lanes.load(residual + at + c, summand);
        value += summand;
      }
      lanes.store(Floats(value < Floats{} ? Floats{} : value), y + at + c);
    });
  }
}

template <typename T>
ARGOSY_KERNEL_INLINE void add_relu_gradient_sums_of(const T* dy,
                                                    const T* x,
                                                    const T* y,
                                                    const ImageShape& image,
                                                    const float* mean,
                                                    const float* inverse_std,
                                                    const float* scale,
                                                    const float* offset,
                                                    T* passed,
                                                    double* sums,
                                                    double* products) {
  const int64_t channels = image.channels;
  const int64_t positions = image.height * image.width;
  for (int64_t begin = 0; begin < positions; begin += kRun) {
    const int64_t end = std::min(positions, begin + kRun);
    for_channel_groups(channels, [&](auto lanes, auto groups, int64_t c) ARGOSY_KERNEL_LAMBDA {
      std::array<Floats, groups> sum{}, product{};
      for (int64_t i = begin * channels + c; i < end * channels; i += channels) {
        for (std::size_t g = 0; g < groups; ++g) {
          const int64_t here = i + g * kLanes;
          const int64_t channel = c + g * kLanes;
          Floats gradient, value, out, centre, factor;
          lanes.load(dy + here, gradient);
          lanes.load(x + here, value);
          if (y != nullptr) {
            lanes.load(y + here, out);
          } else {
            lanes.load(scale + channel, factor);
            lanes.load(offset + channel, out);
            out += value * factor;
          }
          gradient = through(gradient, out);
          if (passed != nullptr) {
            lanes.store(gradient, passed + here);
          }
          lanes.load(mean + channel, centre);
          lanes.load(inverse_std + channel, factor);
          sum[g] += gradient;
          product[g] += gradient * ((value - centre) * factor);
        }
      }
      for (std::size_t g = 0; g < groups; ++g) {
        lanes.add(sum[g], sums + c + g * kLanes);
        lanes.add(product[g], products + c + g * kLanes);
      }
    });
  }
}

template <typename T>
ARGOSY_KERNEL_INLINE void norm_relu_gradient_of(const T* dy,
                                                const T* x,
                                                const ImageShape& image,
                                                const float* mean,
                                                const float* scale,
                                                const float* offset,
                                                const float* slope,
                                                const float* level,
                                                T* dx) {
  const int64_t positions = image.height * image.width;
  for (int64_t i = 0; i < positions; ++i) {
    const int64_t at = i * image.channels;
    for_channels(image.channels, [&](auto lanes, int64_t c) ARGOSY_KERNEL_LAMBDA {
      Floats gradient, value, summand, centre, factor, by, base;
      lanes.load(dy + at + c, gradient);
      lanes.load(x + at + c, value);
      lanes.load(mean + c, centre);
      lanes.load(scale + c, factor);
      if (offset != nullptr) {
        lanes.load(offset + c, summand);
        gradient = through(gradient, value * factor + summand);
      }
      lanes.load(slope + c, by);
      lanes.load(level + c, base);
      lanes.store(Floats((value - centre) * by + base + gradient * factor), dx + at + c);
    });
  }
}

}  // namespace

// Kernels are compiled several times, which templates cannot be: each chooses the type inside.

ARGOSY_KERNEL void add_moments(
    Pixels x, const ImageShape& image, const float* shift, double* sums, double* squares) {
  with_type_of(x, [&](auto element) ARGOSY_KERNEL_LAMBDA {
    add_moments_of(x.as<decltype(element)>(), image, shift, sums, squares);
  });
}

ARGOSY_KERNEL void norm_relu(Pixels x,
                             Pixels residual,
                             const ImageShape& image,
                             const float* scale,
                             const float* offset,
                             PixelsToWrite y) {
  with_type_of(x, [&](auto element) ARGOSY_KERNEL_LAMBDA {
    using T = decltype(element);
    norm_relu_of(x.as<T>(), residual.as<T>(), image, scale, offset, y.as<T>());
  });
}

ARGOSY_KERNEL void add_relu_gradient_sums(Pixels dy,
                                          Pixels x,
                                          Pixels y,
                                          const ImageShape& image,
                                          const float* mean,
                                          const float* inverse_std,
                                          const float* scale,
                                          const float* offset,
                                          PixelsToWrite passed,
                                          double* sums,
                                          double* products) {
  with_type_of(x, [&](auto element) ARGOSY_KERNEL_LAMBDA {
    using T = decltype(element);
    add_relu_gradient_sums_of(dy.as<T>(),
                              x.as<T>(),
                              y.as<T>(),
                              image,
                              mean,
                              inverse_std,
                              scale,
                              offset,
                              passed.as<T>(),
                              sums,
                              products);
  });
}

ARGOSY_KERNEL void norm_relu_gradient(Pixels dy,
                                      Pixels x,
                                      const ImageShape& image,
                                      const float* mean,
                                      const float* scale,
                                      const float* offset,
                                      const float* slope,
                                      const float* level,
                                      PixelsToWrite dx) {
  with_type_of(x, [&](auto element) ARGOSY_KERNEL_LAMBDA {
    using T = decltype(element);
    norm_relu_gradient_of(
        dy.as<T>(), x.as<T>(), image, mean, scale, offset, slope, level, dx.as<T>());
  });
}

}  // namespace argosy::vision::kernels
