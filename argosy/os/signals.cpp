#include "argosy/os/signals.h"

#include <fmt/format.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

namespace argosy::os {

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

std::string describe_signal(int signal) {
  const char* cause = nullptr;
  switch (signal) {
    case SIGKILL:
      cause = "often the out-of-memory killer";
      break;
    case SIGSEGV:
      cause = "invalid memory access";
      break;
    case SIGBUS:
      cause = "memory that cannot be had: often a full /dev/shm or a truncated file";
      break;
    case SIGABRT:
      cause = "abort: often an uncaught exception or a failed assertion";
      break;
    case SIGFPE:
      cause = "integer division by zero or overflow";
      break;
    case SIGILL:
      cause = "illegal instruction: often built for a newer CPU";
      break;
    case SIGPIPE:
      cause = "wrote to a closed pipe";
      break;
    case SIGTERM:
      cause = "asked to stop";
      break;
    case SIGINT:
      cause = "interrupted";
      break;
    case SIGHUP:
      cause = "its terminal closed";
      break;
    case SIGXCPU:
      cause = "CPU time limit";
      break;
    case SIGXFSZ:
      cause = "file size limit";
      break;
    case SIGSYS:
      cause = "forbidden system call";
      break;
    default:
      return signal_name(signal);
  }
  return fmt::format("{} ({})", signal_name(signal), cause);
}

void ignore_write_signals() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

Result<SignalFd> SignalFd::create(std::initializer_list<int> signals) {
  sigset_t wanted;
  sigset_t before;
  ::sigemptyset(&wanted);
  for (const int signal : signals) {
    ::sigaddset(&wanted, signal);
  }
  if (const int error = ::pthread_sigmask(SIG_BLOCK, &wanted, &before); error != 0) {
    return Failure::from_errno("block signals", error);
  }
  UniqueFd fd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) {
    const int error = errno;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return Failure::from_errno("signalfd", error);
  }
  return SignalFd(std::move(fd), before);
}

SignalFd::~SignalFd() {
  if (fd_) {
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
}

std::optional<int> SignalFd::next() {
  signalfd_siginfo info{};
  ssize_t got = 0;
  do {
    got = ::read(fd_.get(), &info, sizeof info);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof info)) {
    return std::nullopt;
  }
  return static_cast<int>(info.ssi_signo);
}

}  // namespace argosy::os
