#pragma once

#include <signal.h>

#include <initializer_list>
#include <optional>
#include <string>

#include "argosy/base/result.h"
#include "argosy/os/fd.h"

namespace argosy::os {

/// "SIGKILL"; "signal 63" where there is no name.
[[nodiscard]] std::string signal_name(int signal);

/// The name with its usual cause: "SIGKILL (often the out-of-memory killer)".
[[nodiscard]] std::string describe_signal(int signal);

/// Writing to a closed pipe or socket fails with EPIPE from now on, and beyond the limit of file
/// sizes (RLIMIT_FSIZE) with EFBIG, instead of killing the process.
void ignore_write_signals();

/// Signals as something that poll() can wait for.
///
///     SignalFd signals = *SignalFd::create({SIGINT, SIGTERM, SIGCHLD});
///     poll(… signals.fd() …);
///     while (std::optional<int> signal = signals.next()) …
///
/// The signals are blocked in the calling thread until the destructor, and in every thread that it
/// starts meanwhile: create it first, on the main thread. A Subprocess starts with an empty mask.
class SignalFd final {
 public:
  [[nodiscard]] static Result<SignalFd> create(std::initializer_list<int> signals);
  ~SignalFd();
  SignalFd(SignalFd&&) noexcept = default;
  SignalFd& operator=(SignalFd&&) = delete;
  SignalFd(const SignalFd&) = delete;
  SignalFd& operator=(const SignalFd&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// The next pending signal; never waits. Ordinary signals of one kind are merged by the kernel.
  [[nodiscard]] std::optional<int> next();

 private:
  SignalFd(UniqueFd fd, sigset_t before) : fd_(std::move(fd)), before_(before) {}
  UniqueFd fd_;
  sigset_t before_;
};

}  // namespace argosy::os
