#pragma once

#include <signal.h>

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace argosy::os {

/// Notes that one of these signals came, for a loop that looks when it suits it.
///
///     const SignalFlag asked({SIGTERM, SIGUSR1});
///     while (!asked.received()) work();
///
/// For as long as it lives the signals neither end the process nor interrupt system calls that can
/// be restarted; of SIGINT a later one does (after 0.3 s), for somebody may be waiting at a
/// terminal. A signal that the program handles itself is left to the program. One at a time in a
/// process: a second one, while the first lives, takes no signals. received(): any thread.
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

  /// The last one that came, 0: none.
  [[nodiscard]] int received() const noexcept;

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace argosy::os
