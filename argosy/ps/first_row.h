#pragma once

#include <cstdint>
#include <span>

#include "argosy/base/mix.h"

namespace argosy::ps {

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
