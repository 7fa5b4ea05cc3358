#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/os/fd.h"
#include "argosy/transport/rank_names.h"
#include "argosy/transport/shm/segment.h"
#include "argosy/transport/shm/shm.h"

// Internal to the room.
namespace argosy::transport {

/// Waits for what other ranks do in shared memory, and wakes those that wait for this one. A wait
/// looks for a moment, then sleeps on this rank's bell. It also ends when a process ended, a rank
/// left or this transport was interrupted. Thread-safe.
class Waiter final {
 public:
  using Counter = std::atomic<uint64_t> RankPage::*;

  /// `processes`: pidfds of all ranks. `meanwhile`: called now and then while a thread waits.
  Waiter(const Segment& segment,
         int rank,
         int size,
         const ShmOptions& options,
         std::vector<os::UniqueFd> processes,
         RankNames names,
         std::function<void()> meanwhile);

  /// Waits until the counter of `rank` is `value` or more.
  /// Throws LinkBroken; LinkTimeout, which names `rank` and all others whose counter is below.
  void wait(int rank, Counter counter, uint64_t value, const Deadline& deadline);
  /// Waits until the counters of all other ranks are.
  void wait_all(Counter counter, uint64_t value, const Deadline& deadline);
  /// Waits until `ready()`, which becomes true by what `rank` does, or any where that is kAnyRank.
  /// Throws as above.
  void wait_until(int rank, const std::function<bool()>& ready, const Deadline& deadline);

  // To be called after a change that others may wait for.

  void ring_all();
  void ring(int rank);

  /// True if the kernel says that the process of `rank` has ended.
  [[nodiscard]] bool has_ended(int rank) const;
  /// This rank takes no part any more. All that wait, here and elsewhere, look again.
  void leave();

 private:
  void sleep(int rank,
             const std::function<bool()>& ready,
             const Deadline& deadline,
             Deadline::Clock::time_point& next_look);
  [[nodiscard]] std::vector<int> awaited(int rank) const;
  void check_others(int awaited, const std::function<bool()>& ready) const;

  const Segment& segment_;
  const int rank_;
  const int size_;
  const std::chrono::nanoseconds spin_;
  const std::chrono::milliseconds look_;
  const std::vector<os::UniqueFd> processes_;
  const RankNames names_;
  const std::function<void()> meanwhile_;
};

}  // namespace argosy::transport
