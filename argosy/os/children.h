#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "argosy/base/result.h"

namespace argosy::os {

/// Returns the children of this process. They include zombies, those of its other threads and
/// adopted ones (see PR_SET_CHILD_SUBREAPER). A child that comes or goes during the call may be
/// missed.
///
/// Errors: ENOENT when /proc is not mounted or belongs to another pid namespace (`unshare --pid`
/// without `--mount-proc`), or when the kernel was built without CONFIG_PROC_CHILDREN.
[[nodiscard]] Result<std::vector<pid_t>> children();

/// Returns `pid` and its descendants, each after its parent, and the first `most` of them only.
/// Returns `pid` alone when /proc shows no children.
[[nodiscard]] std::vector<pid_t> with_descendants(pid_t pid, size_t most);

/// How a process is stopped. It lives, and does nothing until it is continued.
struct Stopped {
  std::string by{};     ///< "SIGSTOP", "a signal" (before Linux 5.16), "the debugger gdb (pid 12)"
  bool traced = false;  ///< a debugger stops it, or a tracer like strace does for a moment
};

/// Returns how `pid` is stopped; all its threads stop together. nullopt: it is not stopped, or
/// /proc does not show it.
[[nodiscard]] std::optional<Stopped> stopped(pid_t pid);

/// Returns the nearest ancestor with this name (/proc/<pid>/comm, 15 bytes at most). nullopt: there
/// is none, or /proc does not say.
[[nodiscard]] std::optional<pid_t> ancestor_named(const std::string& name);

}  // namespace argosy::os
