#pragma once

#include <signal.h>

#include <initializer_list>
#include <optional>
#include <string>

#include "argosy/base/result.h"
#include "argosy/os/fd.h"

namespace argosy::os {

/// Returns "SIGKILL", or "signal 63" for a signal without a name.
[[nodiscard]] std::string signal_name(int signal);

/// Returns the name with the usual cause: "SIGKILL (often the out-of-memory killer)".
[[nodiscard]] std::string describe_signal(int signal);

/// From now on, writing to a closed pipe or socket fails with EPIPE instead of killing the process.
/// Writing beyond the limit of file sizes (RLIMIT_FSIZE) fails with EFBIG.
void ignore_write_signals();

/// Signals as something that poll() can wait for.
///
///     SignalFd signals = *SignalFd::create({SIGINT, SIGTERM, SIGCHLD});
///     poll(… signals.fd() …);
///     while (std::optional<int> signal = signals.next()) …
///
/// Until the destructor the signals are blocked in the calling thread and in every thread that it
/// starts. So create this first, on the main thread. A Subprocess starts with an empty mask.
class SignalFd final {
 public:
  [[nodiscard]] static Result<SignalFd> create(std::initializer_list<int> signals);
  ~SignalFd();
  SignalFd(SignalFd&&) noexcept = default;
  SignalFd& operator=(SignalFd&&) = delete;
  SignalFd(const SignalFd&) = delete;
  SignalFd& operator=(const SignalFd&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Returns the next pending signal; nullopt if there is none. Never waits. The kernel merges
  /// ordinary signals of one kind.
  [[nodiscard]] std::optional<int> next();

 private:
  SignalFd(UniqueFd fd, sigset_t before) : fd_(std::move(fd)), before_(before) {}
  UniqueFd fd_;
  sigset_t before_;
};

}  // namespace argosy::os
