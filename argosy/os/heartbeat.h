#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "argosy/base/result.h"
#include "argosy/os/memory.h"

namespace argosy::os {

/// The progress of a process, in a page of memory that it shares with its launcher. It is written
/// without a system call and read without asking, so it stays true however the process hangs.
struct Pulse {
  std::chrono::nanoseconds silent{};  ///< since the last beat
  int waiting = 0;                    ///< the number of operations in which it waits for others
  std::string last{};                 ///< what it did at that beat: "all_reduce (seq 55) of world"
};

/// The launcher's side.
///
///     HeartbeatMonitor monitor = *HeartbeatMonitor::create();
///     // the child inherits monitor.fd(), and finds its number in ARGOSY_HEARTBEAT_FD
///     if (auto pulse = monitor.read(); pulse && pulse->waiting == 0 && pulse->silent > limit) …
class HeartbeatMonitor final {
 public:
  [[nodiscard]] static Result<HeartbeatMonitor> create();
  [[nodiscard]] int fd() const { return memory_.fd(); }
  /// Returns the newest state. nullopt: the process has not begun to beat, or has ended its
  /// Heartbeat.
  [[nodiscard]] std::optional<Pulse> read() const;

 private:
  explicit HeartbeatMonitor(SharedMemory memory) : memory_(std::move(memory)) {}
  SharedMemory memory_;
};

/// The watched process's side. Thread-safe; a beat costs some 100 ns.
class Heartbeat final {
 public:
  /// Begins to beat. nullptr: nobody watches this process (ARGOSY_HEARTBEAT_FD is not set, or names
  /// no such page).
  [[nodiscard]] static std::unique_ptr<Heartbeat> begin();
  ~Heartbeat();  ///< from now on silence means nothing
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  Heartbeat(Heartbeat&&) = delete;
  Heartbeat& operator=(Heartbeat&&) = delete;

  /// Reports progress. `what` says what the process has just done, in 100 bytes at most. `waiting`
  /// is added to the number of operations in which it waits for others; while it waits, the cause
  /// of its silence lies elsewhere.
  void beat(std::string_view what, int waiting = 0);

 private:
  explicit Heartbeat(SharedMemory memory) : memory_(std::move(memory)) {}
  SharedMemory memory_;
};

}  // namespace argosy::os
