#pragma once

#include <cstdint>
#include <span>

namespace argosy::ps {

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

/// What is drawn for one id of one table: the same for the same seed, on whichever server, in
/// whichever order.
class RowDraws final {
 public:
  constexpr RowDraws(uint64_t seed, uint64_t id) : key_(mixed(seed ^ mixed(id))) {}
  /// Returns the draw of that number, in [0, 1).
  [[nodiscard]] constexpr float unit(uint64_t number) const {
    return to_unit(mixed(key_ ^ number));
  }

 private:
  uint64_t key_;
};

/// Writes the weights of a new row: uniform in [-range, range).
inline void draw_first_row(uint64_t seed, uint64_t id, float range, std::span<float> weights) {
  const RowDraws draws(seed, id);
  for (uint64_t i = 0; i < weights.size(); ++i) {
    weights[i] = (2 * draws.unit(i) - 1) * range;
  }
}

}  // namespace argosy::ps
