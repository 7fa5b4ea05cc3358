#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "argosy/base/deadline.h"

namespace argosy::comm {

/// Threads that each wait for one transfer, so that transfers complete in any order: as many as
/// there ever were transfers on their way at once.
///
/// Why not one thread: a transport's transfer can only be waited for, not asked, and waiting for
/// the first would hide that the second has arrived. Thread-safe. stop() joins.
class WaiterPool final {
 public:
  WaiterPool() = default;
  ~WaiterPool() { stop(); }
  WaiterPool(const WaiterPool&) = delete;
  WaiterPool& operator=(const WaiterPool&) = delete;
  WaiterPool(WaiterPool&&) = delete;
  WaiterPool& operator=(WaiterPool&&) = delete;

  /// Runs `task`, which must not throw, in a thread of its own. False after stop(): not accepted.
  [[nodiscard]] bool run(std::function<void()> task);
  /// Runs `task` in the caller's thread, while drain() and stop() wait for it. It may throw. False
  /// after stop(): not run.
  [[nodiscard]] bool run_here(const std::function<void()>& task);
  /// Waits until no task is left; false when the deadline passed first.
  [[nodiscard]] bool drain(const Deadline& deadline);
  /// Refuses new tasks, finishes those on their way, joins. Idempotent.
  void stop();
  /// For a process that was forked: there are no threads here to join.
  void abandon();

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable idle_changed_;
  std::deque<std::function<void()>> tasks_;
  size_t idle_ = 0;
  size_t here_ = 0;  // callers inside run_here()
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace argosy::comm
