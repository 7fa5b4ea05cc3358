#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "argosy/base/simd.h"
#include "argosy/vision/ops/pixels.h"

// Internal to the kernels of this room: vectors over channels that lie side by side.
namespace argosy::vision::kernels {

/// The number of values that are summed in f32. Such sums are added up in f64.
inline constexpr int64_t kRun = 64;

/// The number of channels per vector. The compiler splits a vector into the registers that exist.
inline constexpr int64_t kLanes = 16;
using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
using Ints = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));
using Words = uint32_t __attribute__((vector_size(kLanes * sizeof(uint32_t))));
using Shorts = uint16_t __attribute__((vector_size(kLanes * sizeof(uint16_t))));

/// Some channels side by side: all lanes, or as many as an image's channels have left.
template <bool kFull>
struct Lanes {
  int64_t count = kLanes;

  template <typename Vector, typename T>
  ARGOSY_KERNEL_INLINE void load(const T* from, Vector& to) const {
    if constexpr (kFull) {
      std::memcpy(&to, from, sizeof to);
    } else {
      to = Vector{};
      std::memcpy(&to, from, static_cast<std::size_t>(count) * sizeof(T));
    }
  }
  template <typename Vector, typename T>
  ARGOSY_KERNEL_INLINE void store(const Vector& from, T* to) const {
    std::memcpy(to, &from, kFull ? sizeof from : static_cast<std::size_t>(count) * sizeof(T));
  }
  ARGOSY_KERNEL_INLINE void load(const BF16* from, Floats& to) const {
    Shorts halves;
    load(&from->bits, halves);
    to = reinterpret_cast<Floats>(__builtin_convertvector(halves, Words) << 16);
  }
  /// Rounds to the nearest, and in the middle to the even one. NaN stays NaN.
  ARGOSY_KERNEL_INLINE void store(const Floats& from, BF16* to) const {
    const Words bits = reinterpret_cast<Words>(from);
    const Words rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const Words nan = (bits >> 16) | 0x40;
    store(__builtin_convertvector(from == from ? rounded : nan, Shorts), &to->bits);
  }
  ARGOSY_KERNEL_INLINE void add(const Floats& values, double* to) const {
    for (int64_t i = 0; i < (kFull ? kLanes : count); ++i) {
      to[i] += static_cast<double>(values[i]);
    }
  }
};

/// Calls body(T()) with the type T of the pixels' elements.
template <typename Some, typename Body>
ARGOSY_KERNEL_INLINE void with_type_of(const Some& pixels, const Body& body) {
  if (pixels.bf16) {
    body(BF16{});
  } else {
    body(float{});
  }
}

/// Calls body(lanes, first channel) for all channels.
template <typename Body>
ARGOSY_KERNEL_INLINE void for_channels(int64_t channels, const Body& body) {
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    body(Lanes<true>{}, c);
  }
  if (c < channels) {
    body(Lanes<false>{channels - c}, c);
  }
}

/// Calls body(lanes, groups, first channel) for all channels: `groups()` vectors at a time, four
/// while there are enough channels, then one. For sums over positions: a pass over 64 channels
/// reads memory in order; a pass over 16 of more channels leaves three of four cache lines for
/// later.
template <typename Body>
ARGOSY_KERNEL_INLINE void for_channel_groups(int64_t channels, const Body& body) {
  constexpr int64_t kWide = 4 * kLanes;
  const int64_t wide = channels / kWide * kWide;
  for (int64_t c = 0; c < wide; c += kWide) {
    body(Lanes<true>{}, std::integral_constant<int64_t, 4>{}, c);
  }
  for_channels(channels - wide, [&](auto lanes, int64_t c) ARGOSY_KERNEL_LAMBDA {
    body(lanes, std::integral_constant<int64_t, 1>{}, wide + c);
  });
}

}  // namespace argosy::vision::kernels
