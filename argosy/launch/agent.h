#pragma once

#include "argosy/launch/options.h"

namespace argosy::launch {

/// Runs `options.command` as the ranks of one node and returns the exit code of `argosy launch`:
/// 0; that of the rank that failed first (128 + n for signal n); 128 + n when the launcher itself
/// was stopped by signal n; 126 or 127 when the program cannot be executed or found.
///
/// One loop over pidfds, pipes and signals. It owns the process: call it from the main thread of a
/// program that has started no other; it changes signal handling and becomes a child subreaper.
/// Errors: UsageError (a bad nproc_per_node); RendezvousError (no store); ConfigError (the log
/// folder, ports or processes cannot be had).
[[nodiscard]] int run(const LaunchOptions& options);

}  // namespace argosy::launch
