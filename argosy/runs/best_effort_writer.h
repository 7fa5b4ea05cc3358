#pragma once

#include <chrono>
#include <functional>
#include <mutex>

namespace argosy::runs {

/// Writes the records of a run, which are not worth a training: what cannot be written is said
/// once. Thread-safe; one write comes after the other.
class BestEffortWriter final {
 public:
  /// Calls `write`. Its DataError is logged if it is the first.
  void write(const std::function<void()>& write);
  /// Does so, and counts its time for is_due().
  void write_paced(const std::function<void()>& write);
  /// True when the last paced write began five seconds ago or earlier, and took at most a hundredth
  /// of the time since.
  [[nodiscard]] bool is_due();

 private:
  using Clock = std::chrono::steady_clock;
  std::mutex writing_;
  Clock::time_point next_{};
  bool told_ = false;
};

}  // namespace argosy::runs
