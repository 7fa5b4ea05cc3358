#pragma once

#include <cstddef>
#include <cstdint>

// Internal to the room.
namespace argosy::image::kernels {

/// Values are taken by so many, a multiple of 1, 2, 3 and 4 channels.
inline constexpr size_t kNormalizeRun = 48;

/// Constants of kNormalizeRun values side by side.
struct NormalizeRun {
  float divisor;
  float divisor_inverse;
  float mean[kNormalizeRun];
  float std[kNormalizeRun];
  float std_inverse[kNormalizeRun];
};

/// Whether this CPU multiplies and adds in one rounding, which normalize() needs.
[[nodiscard]] bool can_normalize();

/// ((values / divisor) - mean) / std, `count` of them. Divisions are products with the inverse and
/// a correction by the remainder, which a fused multiply-add has exactly: the quotient as a
/// division rounds it, for nearly all divisors (Markstein 1990). Who uses it compares all 256
/// values.
void normalize(const uint8_t* values, size_t count, const NormalizeRun& run, float* out);

/// Pixels of three channels side by side to three planes.
void split_channels(const uint8_t* pixels, size_t width, uint8_t* planes, size_t stride);

}  // namespace argosy::image::kernels
