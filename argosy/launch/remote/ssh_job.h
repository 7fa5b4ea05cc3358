#pragma once

#include "argosy/launch/options.h"
#include "argosy/launch/remote/remote_command.h"

namespace argosy::launch {

/// Starts a launcher on each host by ssh, shows what they print, and returns when all have ended.
/// The launchers supervise the ranks and agree on failures and exit codes among themselves.
///
/// The first Ctrl-C or SIGTERM pulls the leash, and a second one lets go of it. The launchers there
/// stop their ranks first with grace, then at once. If this process or a connection dies, the
/// launchers notice the end of their standard input and stop. Returns the exit code of the launcher
/// that failed first; 1 when only ssh failed (its 255).
[[nodiscard]] int run_by_ssh(const LaunchOptions& options, const RemoteJob& job);

/// Returns the job that `options` and `given` ask for. Errors: those of read_hostfile().
[[nodiscard]] RemoteJob plan_remote_job(const LaunchOptions& options, const GivenOptions& given);

}  // namespace argosy::launch
