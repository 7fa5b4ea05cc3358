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

}  // namespace

ARGOSY_KERNEL void add_moments(
    const float* x, const ImageShape& image, const float* shift, double* sums, double* squares) {
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

ARGOSY_KERNEL void norm_relu(const float* x,
                             const float* residual,
                             const ImageShape& image,
                             const float* scale,
                             const float* offset,
                             float* y) {
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

ARGOSY_KERNEL void add_relu_gradient_sums(const float* dy,
                                          const float* x,
                                          const float* y,
                                          const ImageShape& image,
                                          const float* mean,
                                          const float* inverse_std,
                                          const float* scale,
                                          const float* offset,
                                          float* passed,
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

ARGOSY_KERNEL void norm_relu_gradient(const float* dy,
                                      const float* x,
                                      const ImageShape& image,
                                      const float* mean,
                                      const float* scale,
                                      const float* offset,
                                      const float* slope,
                                      const float* level,
                                      float* dx) {
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

}  // namespace argosy::vision::kernels
