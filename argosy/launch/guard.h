#pragma once

#include <sys/types.h>

#include "argosy/base/result.h"
#include "argosy/os/fd.h"

namespace argosy::launch {

/// A small process that lives exactly as long as the launcher. If SIGKILL kills the launcher, it
/// kills the process groups of the ranks. PR_SET_PDEATHSIG alone would end the ranks, but leave
/// what they started (loader processes, the program behind a shell script).
///
///     Guard guard = *Guard::start();
///     spawn({… .pid_fd = guard.pid_fd()});   // each rank enrols itself before it runs the program
///     guard.forget(pid);                     // when its group is empty
///
/// A process that left its rank's group on purpose (setsid) is not followed.
/// Lifetime: start it before any thread exists. The destructor ends it without killing a group.
class Guard final {
 public:
  [[nodiscard]] static Result<Guard> start();
  ~Guard();
  Guard(Guard&&) noexcept = default;
  Guard& operator=(Guard&&) = delete;
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// Returns the descriptor to which a group's leader writes its pid; see
  /// SubprocessOptions::pid_fd.
  [[nodiscard]] int pid_fd() const { return to_guard_.get(); }
  /// Stops guarding `group`, whose number the kernel may now give to others.
  void forget(pid_t group);
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// True if somebody killed the guard. Reaps it then, and pid() loses its meaning.
  [[nodiscard]] bool lost();

 private:
  Guard(pid_t pid, os::UniqueFd to_guard) : pid_(pid), to_guard_(std::move(to_guard)) {}
  pid_t pid_;
  bool lost_ = false;
  os::UniqueFd to_guard_;
};

}  // namespace argosy::launch
