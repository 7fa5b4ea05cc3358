#pragma once

#include <cstdint>

// 16-bit floats without branches, so that loops over them vectorise. Internal to the room; in an
// anonymous namespace because units with different instruction sets include it.
namespace argosy::transport {
namespace {

inline float f16_value(uint16_t h) {
  const uint32_t magnitude = h & 0x7fffU;
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000U) << 16;
  // Denormals go through an integer: a multiplication would lose them where the processor is set
  // to flush denormal f32 inputs.
  const auto denormal =
      __builtin_bit_cast(uint32_t, static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24F);
  const uint32_t normal = (magnitude << 13) + (112U << 23);
  const uint32_t special = (magnitude << 13) | 0x7f800000U;
  const uint32_t finite = magnitude < 0x0400U ? denormal : normal;
  return __builtin_bit_cast(float, sign | (magnitude >= 0x7c00U ? special : finite));
}

inline uint16_t f16_bits(float value) {
  const auto bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t magnitude = bits & 0x7fffffffU;
  const uint32_t sign = (bits >> 16) & 0x8000U;
  // Adding 0.5 leaves 2^-24, the denormals' unit, as the last bit; the addition itself rounds.
  const uint32_t denormal =
      __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, magnitude) + 0.5F) - 0x3f000000U;
  const uint32_t normal = (magnitude - (112U << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  const uint32_t finite = magnitude < 0x38800000U ? denormal : normal;
  const uint32_t large = magnitude > 0x7f800000U ? 0x7e00U : 0x7c00U;
  return static_cast<uint16_t>(sign | (magnitude >= 0x47800000U ? large : finite));
}

inline float bf16_value(uint16_t b) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(b) << 16);
}

inline uint16_t bf16_bits(float value) {
  const auto bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const uint32_t quiet_nan = ((bits >> 16) & 0x8000U) | 0x7fc0U;
  return static_cast<uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet_nan : rounded);
}

}  // namespace
}  // namespace argosy::transport
