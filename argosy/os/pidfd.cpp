#include "argosy/os/pidfd.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace argosy::os {

Result<UniqueFd> own_pidfd() {
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!fd) {
    return Failure::from_errno("pidfd_open", errno);
  }
  return fd;
}

bool has_ended(int pidfd) {
  pollfd poll{.fd = pidfd, .events = POLLIN, .revents = 0};
  return ::poll(&poll, 1, 0) == 1;
}

}  // namespace argosy::os
