#pragma once

#include <sys/resource.h>

#include <optional>

#include "argosy/base/result.h"
#include "argosy/os/signals.h"

namespace argosy::launch {

/// Opens those of the descriptors 0, 1 and 2 that are closed, so that no pipe of ours gets one of
/// these numbers.
void open_missing_streams();

/// Raises the limit of open files as far as the system allows, because each of hundreds of ranks
/// takes five descriptors and a log. Returns the former limit, which the ranks get again (select()
/// fails beyond 1024).
rlim_t raise_open_files();

/// What Ctrl-Z does. kOurs: next() returns SIGTSTP and SIGCONT, so that the ranks stop together
/// with us; see stop_as_asked(). kDefault: it stops this process alone.
enum class JobControl { kOurs, kDefault };

/// Returns the signals that the launcher's loop waits for. SIGHUP is not among them if the launcher
/// inherited it ignored (nohup).
[[nodiscard]] Result<os::SignalFd> take_over_signals(JobControl control);

/// Call it after SIGTSTP: it stops this process as the default action does, and returns when the
/// process runs again. It does not stop when nobody could wake it (an orphaned process group, the
/// init of a container).
void stop_as_asked();

/// From here on the kernel sends this process SIGTERM when something comes from standard input, or
/// when its other end is closed.
Status stop_when_input_says();

/// Reads the signals that have come and returns the first that asks the launcher to stop; nullopt:
/// none does. It drops the others, so call it only when no rank runs to which they could be passed.
[[nodiscard]] std::optional<int> next_stop_signal(os::SignalFd& signals);

}  // namespace argosy::launch
