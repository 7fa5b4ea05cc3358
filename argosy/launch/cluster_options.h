#pragma once

#include <string>
#include <vector>

#include "argosy/launch/options.h"

namespace argosy::launch {

/// What the queue says about nodes, where neither options nor their variables do: inside srun,
/// mpirun and on platforms each launcher is one node of the job (or one rank of its node), see
/// rendezvous/clusters; a batch script's launcher starts those by srun.
/// Errors: UsageError (ranks asked for twice), ConfigError (variables that cannot be).
void settle_cluster(const GivenOptions& given, const Lookup& lookup, LaunchOptions& options);

/// The command that starts `argosy`'s launcher with `args` on all nodes of a Slurm allocation: one
/// for each task that the allocation was made for, or one for each node where `args` say how many
/// ranks a node has.
[[nodiscard]] std::vector<std::string> srun_command(const std::string& argosy,
                                                    Dialect dialect,
                                                    const std::vector<std::string>& args,
                                                    bool one_per_node);

/// Becomes srun_command(), with a job token in the environment. Returns where that fails.
[[nodiscard]] int become_srun(const LaunchOptions& options, const std::vector<std::string>& args);

}  // namespace argosy::launch
