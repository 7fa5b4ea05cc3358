#pragma once

#include <cstdint>
#include <vector>

#include "argosy/base/result.h"
#include "argosy/os/fd.h"

namespace argosy::os {

/// Tells in which order processes ended, no matter how late the caller looks.
///
///     ExitWatch watch = *ExitWatch::create();
///     watch.add(child.pidfd(), 3);
///     poll(… watch.fd() …);
///     for (uint64_t tag : watch.ended()) …   // in the order of their deaths
///
/// poll() says only which of several have ended by now. The kernel's epoll queues descriptors as
/// they become ready, so the order survives a launcher that was busy, stopped or swapped out.
class ExitWatch final {
 public:
  [[nodiscard]] static Result<ExitWatch> create();

  /// Watches a process under the name `tag`. Errors: errno of epoll_ctl(2).
  Status add(int pidfd, uint64_t tag);
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Returns the tags of the processes that have ended since the last call, each once. Never waits.
  [[nodiscard]] std::vector<uint64_t> ended();

 private:
  explicit ExitWatch(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace argosy::os
