#pragma once

#include <sys/types.h>

#include "argosy/base/result.h"
#include "argosy/os/fd.h"

namespace argosy::launch {

/// A small process that lives exactly as long as the launcher and, should the launcher be killed by
/// SIGKILL, kills the process groups of the ranks: PR_SET_PDEATHSIG alone would take the ranks but
/// leave what they started (loader processes, the program behind a shell script).
///
///     Guard guard = *Guard::start();
///     spawn({… .pid_fd = guard.pid_fd()});   // each rank enrols itself before it runs the program
///     guard.forget(pid);                     // when its group is empty
///
/// A process that left its rank's group on purpose (setsid) is not followed.
/// Lifetime: start it before any thread exists. The destructor ends it, and no group is killed.
class Guard final {
 public:
  [[nodiscard]] static Result<Guard> start();
  ~Guard();
  Guard(Guard&&) noexcept = default;
  Guard& operator=(Guard&&) = delete;
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// Where a group's leader writes its pid, see SubprocessOptions::pid_fd.
  [[nodiscard]] int pid_fd() const { return to_guard_.get(); }
  void forget(pid_t group);
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Has somebody killed it? Then reaps it; its number means nothing from here on.
  [[nodiscard]] bool lost();

 private:
  Guard(pid_t pid, os::UniqueFd to_guard) : pid_(pid), to_guard_(std::move(to_guard)) {}
  pid_t pid_;
  bool lost_ = false;
  os::UniqueFd to_guard_;
};

}  // namespace argosy::launch
