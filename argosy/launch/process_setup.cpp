#include "argosy/launch/process_setup.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "argosy/os/fd.h"

namespace argosy::launch {

void open_missing_streams() {
  while (true) {
    const int fd = ::open("/dev/null", O_RDWR);
    if (fd < 0 || fd > 2) {
      ::close(fd);
      return;
    }
  }
}

rlim_t raise_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return 0;
  }
  rlimit most = limit;
  most.rlim_cur = most.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &most);
  return limit.rlim_cur;
}

Result<os::SignalFd> take_over_signals() {
  os::ignore_write_signals();
  ::signal(SIGCHLD, SIG_DFL);  // ignored, the kernel would reap the ranks without telling how
  struct sigaction hangup {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  const bool nohup = hangup.sa_handler == SIG_IGN;
  return os::SignalFd::create(
      {SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD, nohup ? SIGCHLD : SIGHUP});
}

Status stop_when_input_says() {
  const int flags = ::fcntl(STDIN_FILENO, F_GETFL);
  if (::fcntl(STDIN_FILENO, F_SETOWN, ::getpid()) != 0 ||
      ::fcntl(STDIN_FILENO, F_SETSIG, SIGTERM) != 0 ||
      ::fcntl(STDIN_FILENO, F_SETFL, flags | O_ASYNC) != 0) {
    return Failure::from_errno("watch standard input (--leash)", errno);
  }
  const Result<bool> already = os::wait_ready(STDIN_FILENO, POLLIN, Deadline::after({}));
  if (already.ok() && *already) {
    ::kill(::getpid(), SIGTERM);
  }
  return {};
}

std::optional<int> next_stop_signal(os::SignalFd& signals) {
  std::optional<int> first;
  while (const std::optional<int> signal = signals.next()) {
    if (!first && *signal != SIGCHLD && *signal != SIGUSR1 && *signal != SIGUSR2) {
      first = signal;
    }
  }
  return first;
}

bool terminal_redraws() {
  const char* type = ::getenv("TERM");  // NOLINT(concurrency-mt-unsafe): read-only
  return type != nullptr && std::string_view(type) != "dumb";
}

}  // namespace argosy::launch
