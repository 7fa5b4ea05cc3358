#pragma once

#include <cstdint>

namespace argosy {

/// Mixes the bits of a number: different numbers give different, unrelated ones. Source: the
/// finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
[[nodiscard]] constexpr uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// Returns a number in [0, 1) of 24 bits, which a float holds exactly.
[[nodiscard]] constexpr float to_unit(uint64_t bits) {
  return static_cast<float>(bits >> 40U) * 0x1p-24F;
}

}  // namespace argosy
