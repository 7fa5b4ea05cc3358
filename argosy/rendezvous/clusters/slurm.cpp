#include "argosy/rendezvous/clusters/slurm.h"

#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/rendezvous/clusters/host_lists.h"
#include "argosy/rendezvous/clusters/variables.h"

namespace argosy::rendezvous {
namespace clusters {

std::string slurm_step(const Lookup& lookup) {
  const std::string step = text(lookup, {"SLURM_STEP_ID", "SLURM_STEPID"});
  // Numbers from here on are Slurm's own steps: batch script, interactive shell.
  constexpr int64_t kOwnSteps = 0xfffffff0;
  const bool own = strings::parse_int(step).value_or(0) >= kOwnSteps;
  return step.empty() || own
             ? ""
             : fmt::format("slurm-{}.{}", text(lookup, {"SLURM_JOB_ID", "SLURM_JOBID"}), step);
}

std::vector<std::string> allocated_hosts(const Lookup& lookup) {
  const std::string list = text(lookup, {"SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  return list.empty() ? std::vector<std::string>() : expand_hosts(list);
}

std::optional<ClusterTask> Slurm::task(const Lookup& lookup) const {
  const std::string step = slurm_step(lookup);
  const std::optional<int> tasks = number(lookup, "SLURM_STEP_NUM_TASKS", 1);
  // The batch script's own step and salloc's shell have no step's number; they are no tasks. Nor is
  // what is typed into a shell that srun --pty has opened; its variable is inherited by the tasks
  // that srun starts from there.
  const bool shell = lookup("SLURM_PTY_PORT") && tasks.value_or(1) == 1;
  if (step.empty() || !lookup("SLURM_PROCID") || shell) {
    return std::nullopt;
  }
  ClusterTask task{
      .system = "Slurm",
      .task = required(lookup, "SLURM_PROCID"),
      .tasks = tasks.value_or(number(lookup, "SLURM_NTASKS", 1).value_or(1)),
      .local_task = required(lookup, "SLURM_LOCALID"),
      .cpus = number(lookup, "SLURM_CPUS_PER_TASK", 1).value_or(0),
      .hosts = expand_hosts(text(lookup, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"})),
      .job = step};
  // Counts differ between nodes: srun -N2 -n4 may place 3 + 1.
  const std::vector<int> counts =
      expand_counts(text(lookup, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}));
  const auto node = static_cast<size_t>(required(lookup, "SLURM_NODEID"));
  if (node >= counts.size()) {
    throw ConfigError(
        "rendezvous.clusters",
        fmt::format(
            "SLURM_NODEID={}, but SLURM_STEP_TASKS_PER_NODE names {} nodes", node, counts.size()));
  }
  task.local_tasks = counts[node];
  return task;
}

}  // namespace clusters

bool in_slurm_allocation(const Lookup& lookup) {
  return lookup("SLURM_JOB_ID") && lookup("SLURM_JOB_NODELIST") &&
         clusters::slurm_step(lookup).empty();
}

}  // namespace argosy::rendezvous
