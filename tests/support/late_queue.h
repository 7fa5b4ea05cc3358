#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

namespace argosy::test {

/// A stream of a device that is for tests: its work runs in order, in a thread of its own.
///
/// It is as late as it may be: most work begins when somebody waits for it, or kPatience after it
/// was queued; some begins at once. Which it is depends on the seed. So who forgets to wait reads
/// what was there before, and who overwrites memory too early spoils what still has to be read.
///
/// Thread-safe. Lifetime: the destructor runs what is queued.
class LateQueue final {
 public:
  using Ticket = uint64_t;
  /// Work that nobody waits for must begin some day: other processes may need it.
  static constexpr std::chrono::milliseconds kPatience{3};

  explicit LateQueue(uint64_t seed);
  ~LateQueue();
  LateQueue(const LateQueue&) = delete;
  LateQueue& operator=(const LateQueue&) = delete;
  LateQueue(LateQueue&&) = delete;
  LateQueue& operator=(LateQueue&&) = delete;

  /// Returns the work's place in the order, from 1.
  Ticket submit(std::function<void()> work);
  /// Of the newest work; 0: there was none.
  [[nodiscard]] Ticket newest() const;
  [[nodiscard]] bool is_done(Ticket ticket) const;
  /// Blocks until the work has ended, and lets it begin.
  void wait(Ticket ticket);
  /// Returns what the first work that failed threw, once; nullptr: none did.
  [[nodiscard]] std::exception_ptr take_error();

 private:
  struct Work {
    std::function<void()> run;
    std::chrono::steady_clock::time_point latest;
  };
  void serve();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable ended_;
  std::deque<Work> queue_;
  std::mt19937_64 draw_;
  bool late_ = true;
  bool ends_ = false;
  Ticket newest_ = 0;
  Ticket done_ = 0;
  Ticket wanted_ = 0;
  std::exception_ptr error_;
  std::thread thread_;  // the last: it uses all of the above
};

}  // namespace argosy::test
