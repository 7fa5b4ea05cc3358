#include "argosy/vision/ops/norm_pool_kernels.h"

#include <algorithm>

#include "argosy/vision/ops/lanes.h"

namespace argosy::vision::kernels {
namespace {

struct Choice {
  Floats value;
  Floats x;
  Ints place;
};

/// The first of equals; a NaN that is first, for batch norm makes all of them NaN or none.
ARGOSY_KERNEL_INLINE void consider(
    const Floats& x, const Floats& scale, const Floats& offset, int32_t place, Choice& best) {
  const Floats value = x * scale + offset;
  const Ints better = value > best.value;
  best.value = better ? value : best.value;
  best.x = better ? x : best.x;
  best.place = better ? Ints{} + place : best.place;
}

template <typename T>
ARGOSY_KERNEL_INLINE void norm_pool_relu_of(const T* x,
                                            const ImageShape& image,
                                            const float* scale,
                                            const float* offset,
                                            T* y,
                                            T* chosen,
                                            int32_t* where) {
  const int64_t channels = image.channels;
  const int64_t row = image.width * channels;
  for (int64_t h = 0; h < image.height / 2; ++h) {
    for_channels(channels, [&](auto lanes, int64_t c) ARGOSY_KERNEL_LAMBDA {
      Floats factor, summand, next;
      lanes.load(scale + c, factor);
      lanes.load(offset + c, summand);
      const T* top = x + 2 * h * row + c;
      int64_t out = h * (image.width / 2) * channels + c;
      for (int64_t w = 0; w < image.width / 2; ++w, top += 2 * channels, out += channels) {
        Choice best{};
        lanes.load(top, best.x);
        best.value = best.x * factor + summand;
        lanes.load(top + channels, next);
        consider(next, factor, summand, 1, best);
        lanes.load(top + row, next);
        consider(next, factor, summand, 2, best);
        lanes.load(top + row + channels, next);
        consider(next, factor, summand, 3, best);
        const Floats zero{};
        lanes.store(Floats(best.value < zero ? zero : best.value), y + out);
        lanes.store(best.x, chosen + out);
        lanes.store(Ints(best.value <= zero ? Ints{} + kNowhere : best.place), where + out);
      }
    });
  }
}

template <typename T>
ARGOSY_KERNEL_INLINE void add_gradient_sums_of(const T* dy,
                                               const T* chosen,
                                               const int32_t* where,
                                               const ImageShape& image,
                                               const float* mean,
                                               const float* inverse_std,
                                               double* sums,
                                               double* products) {
  const int64_t channels = image.channels;
  const int64_t positions = (image.height / 2) * (image.width / 2);
  for (int64_t begin = 0; begin < positions; begin += kRun) {
    const int64_t end = std::min(positions, begin + kRun);
    for_channels(channels, [&](auto lanes, int64_t c) ARGOSY_KERNEL_LAMBDA {
      Floats centre, factor, gradient, value, sum{}, product{};
      Ints place;
      lanes.load(mean + c, centre);
      lanes.load(inverse_std + c, factor);
      for (int64_t i = begin * channels + c; i < end * channels; i += channels) {
        lanes.load(dy + i, gradient);
        lanes.load(chosen + i, value);
        lanes.load(where + i, place);
        gradient = place == kNowhere ? Floats{} : gradient;
        sum += gradient;
        product += gradient * ((value - centre) * factor);
      }
      lanes.add(sum, sums + c);
      lanes.add(product, products + c);
    });
  }
}

template <typename T>
ARGOSY_KERNEL_INLINE void spread_gradient_of(const T* x,
                                             const T* dy,
                                             const int32_t* where,
                                             const ImageShape& image,
                                             const float* mean,
                                             const float* scale,
                                             const float* slope,
                                             const float* level,
                                             T* dx) {
  const int64_t channels = image.channels;
  const int64_t row = image.width * channels;
  for (int64_t h = 0; h < image.height; ++h) {
    for_channels(channels, [&](auto lanes, int64_t c) ARGOSY_KERNEL_LAMBDA {
      Floats centre, factor, by, base, value, gradient;
      Ints place;
      lanes.load(mean + c, centre);
      lanes.load(scale + c, factor);
      lanes.load(slope + c, by);
      lanes.load(level + c, base);
      const bool pooled = h / 2 < image.height / 2;
      const int64_t windows = pooled ? image.width / 2 : 0;
      int64_t in = h * row + c;
      int64_t out = h / 2 * (image.width / 2) * channels + c;
      const int32_t first = h % 2 == 0 ? 0 : 2;
      for (int64_t w = 0; w < windows; ++w, in += 2 * channels, out += channels) {
        lanes.load(dy + out, gradient);
        lanes.load(where + out, place);
        gradient *= factor;
        lanes.load(x + in, value);
        lanes.store(Floats((value - centre) * by + base + (place == first ? gradient : Floats{})),
                    dx + in);
        lanes.load(x + in + channels, value);
        lanes.store(
            Floats((value - centre) * by + base + (place == first + 1 ? gradient : Floats{})),
            dx + in + channels);
      }
      for (int64_t w = 2 * windows; w < image.width; ++w, in += channels) {  // in no window
        lanes.load(x + in, value);
        lanes.store(Floats((value - centre) * by + base), dx + in);
      }
    });
  }
}

}  // namespace

ARGOSY_KERNEL void norm_pool_relu(Pixels x,
                                  const ImageShape& image,
                                  const float* scale,
                                  const float* offset,
                                  PixelsToWrite y,
                                  PixelsToWrite chosen,
                                  int32_t* where) {
  with_type_of(x, [&](auto element) ARGOSY_KERNEL_LAMBDA {
    using T = decltype(element);
    norm_pool_relu_of(x.as<T>(), image, scale, offset, y.as<T>(), chosen.as<T>(), where);
  });
}

ARGOSY_KERNEL void add_gradient_sums(Pixels dy,
                                     Pixels chosen,
                                     const int32_t* where,
                                     const ImageShape& image,
                                     const float* mean,
                                     const float* inverse_std,
                                     double* sums,
                                     double* products) {
  with_type_of(dy, [&](auto element) ARGOSY_KERNEL_LAMBDA {
    using T = decltype(element);
    add_gradient_sums_of(
        dy.as<T>(), chosen.as<T>(), where, image, mean, inverse_std, sums, products);
  });
}

ARGOSY_KERNEL void spread_gradient(Pixels x,
                                   Pixels dy,
                                   const int32_t* where,
                                   const ImageShape& image,
                                   const float* mean,
                                   const float* scale,
                                   const float* slope,
                                   const float* level,
                                   PixelsToWrite dx) {
  with_type_of(x, [&](auto element) ARGOSY_KERNEL_LAMBDA {
    using T = decltype(element);
    spread_gradient_of(x.as<T>(), dy.as<T>(), where, image, mean, scale, slope, level, dx.as<T>());
  });
}

}  // namespace argosy::vision::kernels
