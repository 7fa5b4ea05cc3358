#pragma once

#include <algorithm>
#include <cstdint>

namespace argosy {

/// A contiguous part of the numbers from 0 on: `begin` to `end - 1`.
struct IndexRange {
  int64_t begin = 0;
  int64_t end = 0;

  [[nodiscard]] constexpr int64_t size() const { return end - begin; }
};

/// Returns what `part` gets where `parts` divide 0 to `total - 1` in their order, as evenly as
/// can be: the first (total % parts) get one more.
[[nodiscard]] constexpr IndexRange even_part(int64_t total, int64_t parts, int64_t part) {
  const auto begin = [&](int64_t p) { return total / parts * p + std::min(p, total % parts); };
  return {begin(part), begin(part + 1)};
}

}  // namespace argosy
