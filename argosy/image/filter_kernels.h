#pragma once

#include <cstdint>

// Internal to the room: kernels on plain memory, for argosy/base/simd.h.
namespace argosy::image::detail {

/// Computes sums[i] += weight × values[i].
void add_weighted(const float* values, float weight, int64_t n, float* sums);
/// Converts values to floats.
void widen(const uint8_t* values, int64_t n, float* floats);
/// Rounds, halves to even. Values outside 0 to 255 become 0 or 255.
void round_to_u8(const float* floats, int64_t n, uint8_t* values);

}  // namespace argosy::image::detail
