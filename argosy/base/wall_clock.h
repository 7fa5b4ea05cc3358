#pragma once

#include <chrono>
#include <cstdint>

namespace argosy {

/// Moments of the monotonic clock as microseconds since 1970, all by one reading of both clocks, at
/// its construction: what came first stays first. A reading anew for each moment would part them by
/// however long the thread is held up between the two clocks. Of three readings the quickest
/// counts.
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
