#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/late_queue.h"

namespace argosy::test {

/// Of each stream, the newest work that comes before something: a vector clock.
using Clock = std::map<const LateQueue*, LateQueue::Ticket>;

/// A place in a stream's order.
struct Moment {
  LateQueue* queue = nullptr;
  LateQueue::Ticket ticket = 0;
  Clock before{};  ///< this place included
};

/// Who has used a piece of memory since it was last written.
struct Uses {
  std::optional<Moment> written{};
  Clock read{};
};

/// Memory that a work touches.
struct Access {
  Uses* memory = nullptr;
  bool writes = false;
};

/// Knows which work comes before which: by its stream's order, by events, and by what the host has
/// waited for. So a missing wait is found in every run, however early or late streams are.
///
/// A thread of the host that asks whether a moment has come learns it for itself. What one waits
/// for, all have: they may tell each other, and nobody hears that here. Memory is compared whole,
/// not by its parts. As torch.cuda._sanitizer, which looks at CUDA's streams. Thread-safe. One for
/// each process: a child of fork() begins anew.
class StreamOrder final {
 public:
  static StreamOrder& of_process();

  /// Names a stream for messages.
  void add(const LateQueue& queue, std::string name);
  /// Queues work that comes after all that the stream and the host have seen.
  void submit(LateQueue& queue, std::function<void()> work, const std::vector<Access>& touched);
  /// What follows in the stream comes after the moment.
  void block(LateQueue& queue, const Moment& moment);
  [[nodiscard]] Moment now(LateQueue& queue);
  /// Blocks until the moment has come, and then the host has seen it.
  void wait(const Moment& moment);
  /// True if the moment has come, and then this thread has seen it.
  [[nodiscard]] bool has_come(const Moment& moment);
  /// The same, but nobody has seen it: if it has come, the memory's uses before it are forgotten.
  [[nodiscard]] bool forget_before(const Moment& moment, Uses& memory);
  /// The host itself reads.
  void read(const std::vector<Access>& touched);

  /// Returns the first work since the last call that should have waited; empty: there was none.
  [[nodiscard]] std::string take_race();
  /// While it lives, races are not told.
  class Allowed final {
   public:
    Allowed() { ++of_process().allowed_; }
    ~Allowed() { --of_process().allowed_; }
    Allowed(const Allowed&) = delete;
    Allowed& operator=(const Allowed&) = delete;
  };

 private:
  [[nodiscard]] Clock host() const;
  void check(const Access& access, const Clock& before, const std::string& who);
  [[nodiscard]] std::string name(const LateQueue* queue) const;

  mutable std::mutex mutex_;
  std::map<const LateQueue*, std::string> names_;
  std::map<const LateQueue*, Clock> newest_;    // of each stream
  Clock host_;                                  // of all threads
  std::map<std::thread::id, Clock> by_thread_;  // what each has seen beside that
  std::string race_;
  std::atomic<int> allowed_{0};
};

}  // namespace argosy::test
