#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace argosy::launch {

/// A time of this machine as microseconds since 1970, as other nodes can compare it. `offset_us`:
/// see clock_offset_us().
[[nodiscard]] inline int64_t to_us(std::chrono::steady_clock::time_point at, int64_t offset_us) {
  const auto ago = std::chrono::steady_clock::now() - at;
  return std::chrono::duration_cast<std::chrono::microseconds>(
             (std::chrono::system_clock::now() - ago).time_since_epoch())
             .count() +
         offset_us;
}

[[nodiscard]] inline int64_t now_us(int64_t offset_us) {
  return to_us(std::chrono::steady_clock::now(), offset_us);
}

/// How far another clock is before this machine's, in microseconds: by the quickest of several
/// calls of `theirs`, to half its time. Source: Cristian's algorithm.
[[nodiscard]] int64_t clock_offset_us(const std::function<int64_t()>& theirs);

}  // namespace argosy::launch
