#include "argosy/launch/guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <span>
#include <vector>

namespace argosy::launch {
namespace {

/// Holds nothing of the launcher's: an open copy of its output would keep a pipeline waiting.
void close_all_but(int fd) {
  ::dup2(fd, 3);
  for (int stream = 0; stream < 3; ++stream) {
    ::close(stream);
  }
  if (::open("/dev/null", O_RDWR) == 0) {
    ::dup2(0, 1);
    ::dup2(0, 2);
  }
  ::close_range(4, ~0U, 0);
}

[[noreturn]] void keep_watch(int from_launcher) {
  sigset_t all;
  ::sigfillset(&all);
  // Ctrl-C and a polite kill are the launcher's business. This process has one thread.
  ::sigprocmask(SIG_SETMASK, &all, nullptr);  // NOLINT(concurrency-mt-unsafe)
  ::setsid();
  ::prctl(PR_SET_NAME, "argosy-guard");
  close_all_but(from_launcher);
  std::vector<int32_t> groups;
  int32_t message = 0;
  while (true) {
    const Result<size_t> got = os::read_all(3, std::as_writable_bytes(std::span(&message, 1)));
    if (!got.ok() || *got != sizeof message) {
      break;  // the launcher is gone without a word
    }
    if (message > 0) {
      groups.push_back(message);
    } else {
      std::erase(groups, -message);
    }
  }
  for (const int32_t group : groups) {
    ::kill(-group, SIGKILL);
  }
  ::_exit(0);
}

void tell(const os::UniqueFd& fd, int32_t message) {
  // A guard that somebody killed is no reason to disturb the job.
  (void)os::write_all(fd.get(), std::as_bytes(std::span(&message, 1)));
}

}  // namespace

Result<Guard> Guard::start() {
  Result<os::Pipe> pipe = os::make_pipe();
  if (!pipe.ok()) {
    return std::move(pipe).failure();
  }
  const pid_t pid = ::fork();
  if (pid < 0) {
    return Failure::from_errno("fork the guard process", errno);
  }
  if (pid == 0) {
    pipe->write.close();
    keep_watch(pipe->read.get());
  }
  return Guard(pid, std::move(pipe->write));
}

void Guard::forget(pid_t group) {
  tell(to_guard_, -group);
}

bool Guard::lost() {
  // EINTR cannot come: WNOHANG never waits.
  lost_ = lost_ || ::waitpid(pid_, nullptr, WNOHANG) == pid_;
  return lost_;
}

Guard::~Guard() {
  if (!to_guard_ || lost_) {
    return;
  }
  // A signal, not a message: it ends a guard that somebody stopped as well. The pipe is closed
  // after that, for its end is the guard's sign to kill.
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace argosy::launch
