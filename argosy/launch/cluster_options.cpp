#include "argosy/launch/cluster_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "argosy/base/catalogue.h"
#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/secrets.h"
#include "argosy/launch/job.h"
#include "argosy/launch/options/values.h"
#include "argosy/os/random.h"
#include "argosy/os/subprocess.h"
#include "argosy/rendezvous/clusters/cluster.h"
#include "argosy/rendezvous/job_token.h"

namespace argosy::launch {
namespace {

bool nodes_are_given(const GivenOptions& given) {
  const auto keys = {"nnodes", "ips", "hostfile"};
  return std::ranges::any_of(keys, [&](const char* key) { return given.has(key); }) ||
         values::is_on(given, "standalone");
}

void take_task(const rendezvous::ClusterTask& task,
               const GivenOptions& given,
               LaunchOptions& options) {
  const bool one_rank = options.nproc_per_node.empty() || options.nproc_per_node == "1";
  if (task.local_tasks > 1 && !one_rank) {
    throw UsageError(
        "launch.cluster",
        fmt::format("{} has started {} launchers on this node, and each shall start {} ranks: "
                    "start one launcher for each node, or leave --nproc_per_node out and each "
                    "starts one rank (--standalone: jobs of their own)",
                    task.system,
                    task.local_tasks,
                    options.nproc_per_node));
  }
  if (task.local_tasks > 1) {
    options.nproc_per_node = "1";
  }
  options.local_task = task.local_task;
  options.local_tasks = task.local_tasks;
  options.threads = task.cpus;
  const bool told = given.first_of({"rdzv_endpoint", "master", "master_addr"}).has_value();
  // Where the user has to say where all meet, the name need not be the same on all hosts.
  if (options.job_id.empty() && !told) {
    options.job_id = task.job;
  }
  if (task.tasks == 1) {
    return;
  }
  const rendezvous::ClusterMeeting meeting = rendezvous::meeting_of(task);
  if (meeting.host.empty() && !told) {
    throw UsageError("launch.cluster",
                     fmt::format("{} says node {} of {}, but not which host the first one is: give "
                                 "--master HOST:PORT, an address of it, the same on all",
                                 task.system,
                                 task.task,
                                 task.tasks));
  }
  options.one_output = task.one_output;
  options.nodes.nodes = task.tasks;
  options.nodes.node_rank = task.task;
  options.nodes.meet_host = meeting.host;
  options.nodes.meet_port = meeting.port;
  if (told) {
    settle_meeting(given, options.nodes);
  }
  options.master_port = 0;
}

/// On the only node of an allocation that says no more than that: nothing is left to srun, which
/// containers often lack.
bool this_node_is_all(const Lookup& lookup, const LaunchOptions& options) {
  const auto is_one = [&](const char* name) { return lookup(name).value_or("1") == "1"; };
  return lookup("SLURMD_NODENAME") && is_one("SLURM_JOB_NUM_NODES") &&
         (!options.nproc_per_node.empty() || is_one("SLURM_NTASKS"));
}

/// An indexed Job of which this pod cannot know how many there are.
void warn_of_a_pod_alone(const Lookup& lookup) {
  const std::string index = lookup("JOB_COMPLETION_INDEX").value_or("");
  if (!index.empty() && lookup("KUBERNETES_SERVICE_HOST")) {
    fmt::print(
        stderr,
        "[launch] pod {} of an indexed Job trains alone: Kubernetes does not say how many pods "
        "there are. --nnodes N --master <job>-0.<service>:29500 makes them one job; "
        "--standalone silences this warning\n",
        index);
  }
}

}  // namespace

void settle_cluster(const GivenOptions& given, const Lookup& lookup, LaunchOptions& options) {
  if (nodes_are_given(given)) {
    return;
  }
  if (const auto task = rendezvous::find_task(lookup, rendezvous::TaskFor::kLauncher)) {
    take_task(*task, given, options);
  } else if (rendezvous::in_slurm_allocation(lookup)) {
    options.through_srun = !this_node_is_all(lookup, options);
  } else {
    warn_of_a_pod_alone(lookup);
  }
}

std::vector<std::string> srun_command(const std::string& argosy,
                                      Dialect dialect,
                                      const std::vector<std::string>& args,
                                      SrunTasks tasks) {
  // Standard input is rank 0's; PMI is not needed.
  std::vector<std::string> command{"srun", "--mpi=none", "--input=0"};
  if (tasks == SrunTasks::kOnePerNode) {
    // A node's launcher shares the whole node out among its ranks.
    command.insert(command.end(), {"--ntasks-per-node=1", "--cpu-bind=none"});
    if (const auto nodes = env::get("SLURM_JOB_NUM_NODES")) {
      command.push_back("--ntasks=" + *nodes);
    }
  }
  command.insert(command.end(), {argosy, command_of(dialect)});
  command.insert(command.end(), args.begin(), args.end());
  return command;
}

int become_srun(const LaunchOptions& options, const std::vector<std::string>& args) {
  const std::string self = env::own_program().string();
  const SrunTasks tasks =
      options.nproc_per_node.empty() ? SrunTasks::kAsAllocated : SrunTasks::kOnePerNode;
  std::vector<std::string> command = srun_command(self, options.dialect, args, tasks);
  if (options.dry_run) {
    fmt::print("[launch] would run: {}\n", fmt::join(secrets::hidden(command), " "));
    return 0;
  }
  if (rendezvous::job_token(env::get).empty()) {
    // No thread exists yet. NOLINTNEXTLINE(concurrency-mt-unsafe)
    ::setenv("ARGOSY_TOKEN", os::random_hex(16).c_str(), 1);
  }
  // What sbatch was told of a task's cores is not what srun goes by (since Slurm 22.05).
  const std::optional<std::string> cores = env::get("SLURM_CPUS_PER_TASK");
  if (cores && tasks == SrunTasks::kAsAllocated) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    ::setenv("SRUN_CPUS_PER_TASK", cores->c_str(), 0);
  }
  if (tasks == SrunTasks::kOnePerNode) {
    // A launcher has its node's cores, however many a task was meant to have.
    ::unsetenv("SLURM_CPUS_PER_TASK");  // NOLINT(concurrency-mt-unsafe)
  }
  // Of salloc's shell; a task that inherits it would look like a shell.
  ::unsetenv("SLURM_PTY_PORT");  // NOLINT(concurrency-mt-unsafe)
  fmt::print(stderr, "[launch] starting through srun (on this node alone: --standalone)\n");
  std::vector<char*> raw;
  std::ranges::transform(
      command, std::back_inserter(raw), [](std::string& word) { return word.data(); });
  raw.push_back(nullptr);
  ::execvp(raw.front(), raw.data());
  const int error = errno;
  fmt::print(stderr,
             "[{}] inside a Slurm allocation the ranks are started by srun, which cannot be "
             "executed: {}. To run on this node alone: --standalone. See {}\n",
             "launch.cluster",
             errno_message(error),
             catalogue_section("launch.cluster"));
  return error == ENOENT ? 127 : 126;
}

}  // namespace argosy::launch
