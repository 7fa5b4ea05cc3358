#pragma once

#include <string>
#include <vector>

#include "argosy/launch/options.h"

namespace argosy::launch {

/// Fills in what the queue says about nodes, unless options or their variables say it. Inside srun,
/// mpirun and on platforms each launcher is one node of the job (or one rank of its node); see
/// rendezvous/clusters. In a batch script the launcher starts those by srun.
/// Errors: UsageError (ranks asked for twice), ConfigError (contradictory variables).
void settle_cluster(const GivenOptions& given, const Lookup& lookup, LaunchOptions& options);

/// How many launchers srun starts.
enum class SrunTasks {
  kAsAllocated,  ///< one for each task of the allocation
  kOnePerNode,   ///< one for each node, where the options say how many ranks a node has
};

/// Returns the command that starts the launcher with `args` on all nodes of a Slurm allocation.
[[nodiscard]] std::vector<std::string> srun_command(const std::string& argosy,
                                                    Dialect dialect,
                                                    const std::vector<std::string>& args,
                                                    SrunTasks tasks);

/// Replaces this process by srun_command(), with a job token in the environment. Returns an exit
/// code when that fails.
[[nodiscard]] int become_srun(const LaunchOptions& options, const std::vector<std::string>& args);

}  // namespace argosy::launch
