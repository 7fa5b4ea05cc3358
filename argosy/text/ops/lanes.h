#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "argosy/base/simd.h"

// Internal to the kernels of this room: vectors of f32 over numbers in memory that are f32 or bf16.
namespace argosy::text::kernels {

/// The bits of a bf16: the upper half of a f32.
struct Bf16 {
  uint16_t bits;
};

/// The number of values per vector. The compiler splits a vector into the registers that exist.
inline constexpr int64_t kLanes = 16;
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
using Ints = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));
using Words = uint32_t __attribute__((vector_size(kLanes * sizeof(uint32_t))));
using Shorts = uint16_t __attribute__((vector_size(kLanes * sizeof(uint16_t))));

/// Vectors that lie beside each other: all lanes, or as many as are left.
template <bool kFull>
struct Lanes {
  int64_t count = kLanes;

  ARGOSY_KERNEL_INLINE void load(const float* from, Floats& to) const { copy(from, to); }
  ARGOSY_KERNEL_INLINE void load(const Bf16* from, Floats& to) const {
    Shorts bits;
    copy(from, bits);
    const Words words = __builtin_convertvector(bits, Words) << 16;
    std::memcpy(&to, &words, sizeof to);
  }
  ARGOSY_KERNEL_INLINE void store(const Floats& from, float* to) const {
    std::memcpy(to, &from, bytes<float>());
  }
  /// Rounds to the nearest, to even where two are as near. NaN stays NaN.
  ARGOSY_KERNEL_INLINE void store(const Floats& from, Bf16* to) const {
    Words words;
    std::memcpy(&words, &from, sizeof words);
    const Words rounded = (words + 0x7fff + ((words >> 16) & 1)) >> 16;
    const Words is_nan = reinterpret_cast<Words>(from != from);
    const Words chosen = (rounded & ~is_nan) | (is_nan & 0x7fc0);
    const Shorts bits = __builtin_convertvector(chosen, Shorts);
    std::memcpy(to, &bits, bytes<Bf16>());
  }
  /// `value` in the lanes that are there, `other` in the rest.
  ARGOSY_KERNEL_INLINE Floats or_else(const Floats& value, float other) const {
    if constexpr (kFull) {
      return value;
    }
    Floats result = Floats{} + other;
    for (int64_t i = 0; i < count; ++i) {
      result[i] = value[i];
    }
    return result;
  }

 private:
  template <typename T>
  ARGOSY_KERNEL_INLINE std::size_t bytes() const {
    return static_cast<std::size_t>(kFull ? kLanes : count) * sizeof(T);
  }
  template <typename T, typename Vector>
  ARGOSY_KERNEL_INLINE void copy(const T* from, Vector& to) const {
    if constexpr (!kFull) {
      to = Vector{};
    }
    std::memcpy(&to, from, bytes<T>());
  }
};

/// Calls body(lanes, first) for all of `count` values.
template <typename Body>
ARGOSY_KERNEL_INLINE void for_lanes(int64_t count, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    body(Lanes<true>{}, i);
  }
  if (i < count) {
    body(Lanes<false>{count - i}, i);
  }
}

/// The sum of all lanes, in one order.
ARGOSY_KERNEL_INLINE float sum_of(const Floats& values) {
  float sums[kLanes];
  std::memcpy(sums, &values, sizeof sums);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) {
      sums[i] += sums[i + half];
    }
  }
  return sums[0];
}

/// The largest of all lanes.
ARGOSY_KERNEL_INLINE float most_of(const Floats& values) {
  float most = values[0];
  for (int64_t i = 1; i < kLanes; ++i) {
    most = values[i] > most ? values[i] : most;
  }
  return most;
}

/// e^x to 2 units of the last place. Values below 2^-126 become 0 or stay at it; NaN stays NaN.
/// Source: range reduction by ln 2 in two parts (Cody & Waite 1980), Taylor's series to x^7/7!.
ARGOSY_KERNEL_INLINE Floats exponential(const Floats& x) {
  const Floats least = Floats{} - 87.3F;
  const Floats most = Floats{} + 88.7F;
  Floats clipped = x < least ? least : x;
  clipped = clipped > most ? most : clipped;
  // Adding 1.5 · 2^23 rounds to a whole number, which then stands in the lowest bits.
  constexpr float kRound = 12582912.0F;
  const Floats shifted = clipped * 1.44269504F + kRound;
  const Floats whole = shifted - kRound;
  const Floats rest = (clipped - whole * 0.693359375F) + whole * 2.12194440e-4F;
  Floats series = Floats{} + 1.0F / 5040;
  series = series * rest + 1.0F / 720;
  series = series * rest + 1.0F / 120;
  series = series * rest + 1.0F / 24;
  series = series * rest + 1.0F / 6;
  series = series * rest + 0.5F;
  series = series * rest + 1.0F;
  series = series * rest + 1.0F;
  Ints exponent;
  std::memcpy(&exponent, &shifted, sizeof exponent);
  exponent = (exponent + 127) << 23;  // what lies above the lowest bits is shifted out
  Floats power;
  std::memcpy(&power, &exponent, sizeof power);
  return series * power;
}

/// 1 / (1 + e^-x)
ARGOSY_KERNEL_INLINE Floats sigmoid(const Floats& x) {
  return 1.0F / (1.0F + exponential(-x));
}

}  // namespace argosy::text::kernels
