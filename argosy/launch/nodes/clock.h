#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace argosy::launch {

/// Returns the time now in microseconds since 1970, which other nodes can compare. `offset_us`: see
/// clock_offset_us().
[[nodiscard]] inline int64_t now_us(int64_t offset_us) {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
             .count() +
         offset_us;
}

/// Returns the other clock minus this machine's, in microseconds. The quickest of several calls of
/// `theirs` counts, and half its duration is the error. Source: Cristian's algorithm.
[[nodiscard]] int64_t clock_offset_us(const std::function<int64_t()>& theirs);

}  // namespace argosy::launch
