#pragma once

#include <chrono>
#include <cstdint>

namespace argosy {

/// Converts moments of the monotonic clock to microseconds since 1970. All moments use one reading
/// of both clocks, taken by the constructor, so they keep their order. A new reading for each
/// moment could reorder them, because the thread may be held up between the two clocks. The
/// constructor reads three times and keeps the quickest reading.
class WallClock final {
 public:
  WallClock() {
    auto quickest = std::chrono::steady_clock::duration::max();
    for (int i = 0; i < 3; ++i) {
      const auto before = std::chrono::steady_clock::now();
      const auto system = std::chrono::system_clock::now();
      const auto took = std::chrono::steady_clock::now() - before;
      if (took < quickest) {
        quickest = took;
        steady_ = before + took / 2;
        system_ = system;
      }
    }
  }
  [[nodiscard]] int64_t us(std::chrono::steady_clock::time_point at) const {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               (system_ - (steady_ - at)).time_since_epoch())
        .count();
  }

 private:
  std::chrono::steady_clock::time_point steady_{};
  std::chrono::system_clock::time_point system_{};
};

}  // namespace argosy
