#pragma once

#include <cstdint>

// Internal to the room: plain memory, for argosy/base/simd.h.
namespace argosy::image::detail {

/// sums[i] += weight × values[i].
void add_weighted(const float* values, float weight, int64_t n, float* sums);
/// Values as floats.
void widen(const uint8_t* values, int64_t n, float* floats);
/// Rounded, halves to even; outside of 0 to 255: cut off.
void round_to_u8(const float* floats, int64_t n, uint8_t* values);

}  // namespace argosy::image::detail
