#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/result.h"

namespace argosy::os {

/// The children of this process, those of its other threads and adopted ones included (see
/// PR_SET_CHILD_SUBREAPER), zombies too. A child that comes or goes meanwhile may be missed.
///
/// Errors: ENOENT where /proc is not mounted or is that of another pid namespace (`unshare --pid`
/// without `--mount-proc`), or the kernel was built without CONFIG_PROC_CHILDREN.
[[nodiscard]] Result<std::vector<pid_t>> children();

/// `pid` and what it has started, what that has started too, each after its parent; the first
/// `most` of them. `pid` alone where /proc shows no children.
[[nodiscard]] std::vector<pid_t> with_descendants(pid_t pid, size_t most);

/// A process that is stopped: it lives and does nothing until it is told to go on.
struct Stopped {
  std::string by{};     ///< "SIGSTOP", "a signal" (before Linux 5.16), "the debugger gdb (pid 12)"
  bool traced = false;  ///< by a debugger, or for the moment by a tracer like strace
};

/// nullopt: the process is not stopped, or /proc does not show it. All its threads stop together.
[[nodiscard]] std::optional<Stopped> stopped(pid_t pid);

/// The nearest ancestor whose name (/proc/<pid>/comm, at most 15 bytes of it) is `name`; nullopt:
/// none, or /proc does not say.
[[nodiscard]] std::optional<pid_t> ancestor_named(const std::string& name);

}  // namespace argosy::os
