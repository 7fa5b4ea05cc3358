#include "argosy/os/exit_watch.h"

#include <sys/epoll.h>

#include <array>
#include <cerrno>

namespace argosy::os {

Result<ExitWatch> ExitWatch::create() {
  UniqueFd fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!fd) {
    return Failure::from_errno("epoll_create", errno);
  }
  return ExitWatch(std::move(fd));
}

Status ExitWatch::add(int pidfd, uint64_t tag) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.u64 = tag;
  if (::epoll_ctl(fd_.get(), EPOLL_CTL_ADD, pidfd, &event) != 0) {
    return Failure::from_errno("watch a process", errno);
  }
  return {};
}

std::vector<uint64_t> ExitWatch::ended() {
  std::vector<uint64_t> tags;
  std::array<epoll_event, 64> events{};
  while (true) {
    const int count = ::epoll_wait(fd_.get(), events.data(), static_cast<int>(events.size()), 0);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    for (int i = 0; i < count; ++i) {
      tags.push_back(events[static_cast<size_t>(i)].data.u64);
    }
    if (count < static_cast<int>(events.size())) {
      return tags;
    }
  }
}

}  // namespace argosy::os
