#pragma once

#include <chrono>
#include <cstdint>

namespace argosy::launch {

/// A time of this machine as microseconds since 1970, as other nodes can compare it.
[[nodiscard]] inline int64_t to_us(std::chrono::steady_clock::time_point at) {
  const auto ago = std::chrono::steady_clock::now() - at;
  return std::chrono::duration_cast<std::chrono::microseconds>(
             (std::chrono::system_clock::now() - ago).time_since_epoch())
      .count();
}

[[nodiscard]] inline int64_t now_us() {
  return to_us(std::chrono::steady_clock::now());
}

}  // namespace argosy::launch
