#include "argosy/launch/process_setup.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

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

namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Result<os::SignalFd> take_over_signals(JobControl control) {
  os::ignore_write_signals();
  ::signal(SIGCHLD, SIG_DFL);  // ignored, the kernel would reap the ranks without telling how
  const bool nohup = is_ignored(SIGHUP);
  const bool stops = control == JobControl::kOurs && !is_ignored(SIGTSTP);
  return os::SignalFd::create({SIGINT,
                               SIGTERM,
                               SIGQUIT,
                               SIGUSR1,
                               SIGUSR2,
                               SIGCHLD,
                               nohup ? SIGCHLD : SIGHUP,
                               stops ? SIGTSTP : SIGCHLD,
                               stops ? SIGCONT : SIGCHLD});
}

void stop_as_asked() {
  sigset_t stop;
  ::sigemptyset(&stop);
  ::sigaddset(&stop, SIGTSTP);
  ::raise(SIGTSTP);
  ::pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);  // stops here
  ::pthread_sigmask(SIG_BLOCK, &stop, nullptr);
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
    if (*signal == SIGTSTP) {
      stop_as_asked();  // nothing runs that could be stopped with us
    }
    const bool stops = *signal != SIGCHLD && *signal != SIGUSR1 && *signal != SIGUSR2 &&
                       *signal != SIGTSTP && *signal != SIGCONT;
    if (!first && stops) {
      first = signal;
    }
  }
  return first;
}

}  // namespace argosy::launch
