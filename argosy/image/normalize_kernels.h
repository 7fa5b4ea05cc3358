#pragma once

#include <cstddef>
#include <cstdint>

// Internal to the room.
namespace argosy::image::kernels {

/// Number of values taken at a time. It is a multiple of 1, 2, 3 and 4 channels.
inline constexpr size_t kNormalizeRun = 48;

/// The constants of kNormalizeRun values side by side.
struct NormalizeRun {
  float divisor;
  float divisor_inverse;
  float mean[kNormalizeRun];
  float std[kNormalizeRun];
  float std_inverse[kNormalizeRun];
};

/// True if this CPU multiplies and adds with one rounding, which normalize() needs.
[[nodiscard]] bool can_normalize();

/// Computes ((values / divisor) - mean) / std for `count` values. A division is a product with the
/// inverse, corrected by the remainder, which a fused multiply-add gives exactly. For nearly all
/// divisors this is the rounded quotient (Markstein 1990). The caller must compare all 256 values.
void normalize(const uint8_t* values, size_t count, const NormalizeRun& run, float* out);

/// Moves pixels of three channels side by side to three planes.
void split_channels(const uint8_t* pixels, size_t width, uint8_t* planes, size_t stride);

}  // namespace argosy::image::kernels
