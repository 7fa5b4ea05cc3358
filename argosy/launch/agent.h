#pragma once

#include "argosy/launch/options.h"

namespace argosy::launch {

/// Runs `options.command` as the ranks of one node. Returns the exit code of `argosy launch`: 0;
/// the code of the rank that failed first (128 + n for signal n); 128 + n when signal n stopped the
/// launcher itself; 126 or 127 when the program cannot be executed or found.
///
/// It is one loop over pidfds, pipes and signals, and it owns the process: it changes signal
/// handling and becomes a child subreaper. Call it from the main thread of a program that has
/// started no other thread.
/// Errors: UsageError (bad nproc_per_node); RendezvousError (no store); ConfigError (no log folder,
/// ports or processes).
[[nodiscard]] int run(const LaunchOptions& options);

}  // namespace argosy::launch
