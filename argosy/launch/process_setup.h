#pragma once

#include <sys/resource.h>

#include <optional>

#include "argosy/base/result.h"
#include "argosy/os/signals.h"

namespace argosy::launch {

/// Descriptors 0, 1 and 2 exist from here on, so that no pipe of ours takes one of these numbers.
void open_missing_streams();

/// Room for a rank's five descriptors and its log, hundreds of times: as many as the system allows.
/// Returns how many there were, which the ranks get again (select() fails beyond 1024).
rlim_t raise_open_files();

/// What Ctrl-Z does: kOurs: next() returns SIGTSTP and SIGCONT, for ranks that stop with us, see
/// stop_as_asked(); kDefault: it stops this process alone.
enum class JobControl { kOurs, kDefault };

/// The signals that the launcher's loop waits for. SIGHUP is not among them where the launcher
/// inherited it ignored (nohup).
[[nodiscard]] Result<os::SignalFd> take_over_signals(JobControl control);

/// After SIGTSTP: stops this process as the default action does, hence not where nobody could wake
/// it (an orphaned process group, the init of a container). Returns when it runs again.
void stop_as_asked();

/// From here on the kernel sends this process SIGTERM whenever something comes from standard input,
/// and when its other end is closed.
Status stop_when_input_says();

/// Reads what has come; the first signal that asks the launcher to stop, if there is one. Where no
/// rank runs, there is nobody to pass the others on to.
[[nodiscard]] std::optional<int> next_stop_signal(os::SignalFd& signals);

}  // namespace argosy::launch
