#pragma once

#include <signal.h>

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace argosy::os {

/// Records that one of these signals came, for a loop that asks when it is ready.
///
///     const SignalFlag asked({SIGTERM, SIGUSR1});
///     while (!asked.received()) work();
///
/// While this object lives, the signals neither end the process nor interrupt system calls that can
/// be restarted. One exception: a SIGINT that comes more than 0.3 s after the first one ends the
/// process, because somebody may be waiting at a terminal. A signal that the program handles itself
/// is left to the program. Use one at a time in a process: while the first lives, a second one
/// takes no signals. received() may be called on any thread.
class SignalFlag final {
 public:
  /// Milliseconds from any fixed moment, read within the signal handler.
  using Clock = int64_t (*)();

  /// `clock` is for tests; null: the monotonic one.
  SignalFlag(std::initializer_list<int> signals, Clock clock = nullptr);
  ~SignalFlag();
  SignalFlag(const SignalFlag&) = delete;
  SignalFlag& operator=(const SignalFlag&) = delete;
  SignalFlag(SignalFlag&&) = delete;
  SignalFlag& operator=(SignalFlag&&) = delete;

  /// Returns the last signal that came. 0: none came.
  [[nodiscard]] int received() const noexcept;

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace argosy::os
