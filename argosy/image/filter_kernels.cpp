#include "argosy/image/filter_kernels.h"

#include "argosy/base/simd.h"

namespace argosy::image::detail {

ARGOSY_KERNEL void add_weighted(const float* values, float weight, int64_t n, float* sums) {
  const float* __restrict from = values;
  float* __restrict to = sums;
  for (int64_t i = 0; i < n; ++i) {
    to[i] += weight * from[i];
  }
}

ARGOSY_KERNEL void widen(const uint8_t* values, int64_t n, float* floats) {
  for (int64_t i = 0; i < n; ++i) {
    floats[i] = static_cast<float>(values[i]);
  }
}

ARGOSY_KERNEL void round_to_u8(const float* floats, int64_t n, uint8_t* values) {
  // Added and taken off, 1.5 × 2^23 leaves no place for a fraction: it is rounded off.
  constexpr float kWhole = 12582912.0F;
  for (int64_t i = 0; i < n; ++i) {
    float value = floats[i] + kWhole;
    value -= kWhole;
    value = value < 0 ? 0 : value;
    values[i] = static_cast<uint8_t>(static_cast<int32_t>(value > 255 ? 255 : value));
  }
}

}  // namespace argosy::image::detail
