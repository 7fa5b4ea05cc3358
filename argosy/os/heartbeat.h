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

/// What a process says of its progress, in a page of memory that it shares with its launcher: told
/// without a system call, read without asking, true however the process hangs.
struct Pulse {
  std::chrono::nanoseconds silent{};  ///< since the last beat
  int waiting = 0;                    ///< operations in which it waits for others
  std::string last{};                 ///< what it did then: "all_reduce #55 of world"
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
  /// nullopt: the process has not begun to beat, or has said that it will not any more.
  [[nodiscard]] std::optional<Pulse> read() const;

 private:
  explicit HeartbeatMonitor(SharedMemory memory) : memory_(std::move(memory)) {}
  SharedMemory memory_;
};

/// The watched process's side. Thread-safe; a beat costs some 100 ns.
class Heartbeat final {
 public:
  /// nullptr: nobody watches this process (ARGOSY_HEARTBEAT_FD is not set, or is no such page).
  [[nodiscard]] static std::unique_ptr<Heartbeat> begin();
  ~Heartbeat();  ///< silence means nothing from now on
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  Heartbeat(Heartbeat&&) = delete;
  Heartbeat& operator=(Heartbeat&&) = delete;

  /// This process gets on; `what` it has just done, 100 bytes at most. `waiting` changes the number
  /// of operations in which it waits for others, and whose silence is not its own.
  void beat(std::string_view what, int waiting = 0);

 private:
  explicit Heartbeat(SharedMemory memory) : memory_(std::move(memory)) {}
  SharedMemory memory_;
};

}  // namespace argosy::os
