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

/// Threads that each wait for one transfer, so transfers complete in any order. There are as many
/// as the largest number of transfers that ran at once.
///
/// One thread would not do: it can only wait for a transfer, not ask it, and while it waits for the
/// first it would miss that the second has arrived. Thread-safe. stop() joins the threads.
class WaiterPool final {
 public:
  WaiterPool() = default;
  ~WaiterPool() { stop(); }
  WaiterPool(const WaiterPool&) = delete;
  WaiterPool& operator=(const WaiterPool&) = delete;
  WaiterPool(WaiterPool&&) = delete;
  WaiterPool& operator=(WaiterPool&&) = delete;

  /// Runs `task`, which must not throw, in a thread of its own. Returns false after stop(), without
  /// accepting it.
  [[nodiscard]] bool run(std::function<void()> task);
  /// Runs `task` in the caller's thread, while drain() and stop() wait for it. It may throw.
  /// Returns false after stop(), without running it.
  [[nodiscard]] bool run_here(const std::function<void()>& task);
  /// Waits until no task is left. Returns false if the deadline passes first.
  [[nodiscard]] bool drain(const Deadline& deadline);
  /// Refuses new tasks, finishes the running ones and joins the threads. Idempotent.
  void stop();
  /// For a forked process, which has no threads to join. It must not be destroyed there.
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
