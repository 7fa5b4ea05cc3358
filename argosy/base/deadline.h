#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace argosy {

/// The moment at which a wait gives up. It is monotonic: a changed wall clock does not move it.
///
///     Deadline deadline = Deadline::after(30s);
///     while (!ready && !deadline.expired()) wait_some(deadline.remaining());
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline after(std::chrono::milliseconds timeout) {
    // Capped at 30 days so that adding "forever" cannot overflow the clock.
    return Deadline(Clock::now() + std::min(timeout, kLongest));
  }
  static Deadline never() { return after(kLongest); }

  [[nodiscard]] bool expired() const { return Clock::now() >= at_; }
  [[nodiscard]] Clock::time_point at() const { return at_; }
  /// Returns the time left, rounded up to a millisecond so that a poll() does not spin. Zero when
  /// expired.
  [[nodiscard]] std::chrono::milliseconds remaining() const {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now());
    return std::max(left, std::chrono::milliseconds(0));
  }
  [[nodiscard]] Deadline sooner(Deadline other) const { return Deadline(std::min(at_, other.at_)); }

 private:
  static constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 30);
  explicit Deadline(Clock::time_point at) : at_(at) {}
  Clock::time_point at_;
};

/// Waits until `ready()` or the deadline; returns ready().
template <typename Ready>
bool wait_until(std::condition_variable& changed,
                std::unique_lock<std::mutex>& lock,
                const Deadline& deadline,
                Ready ready) {
  return changed.wait_until(lock, deadline.at(), std::move(ready));
}

}  // namespace argosy
