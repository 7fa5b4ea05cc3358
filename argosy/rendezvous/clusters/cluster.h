#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/rendezvous/environment.h"

// What queues and MPI say to the processes that they start. Sources: the environments of real jobs
// (Slurm 22.05, OpenMPI 4.1, MPICH 4.0), recorded in clusters_test.cpp.
namespace argosy::rendezvous {

/// This process as one of the tasks that a queue or an mpirun has started.
struct ClusterTask {
  std::string system{};  ///< "Slurm", "OpenMPI", …
  int task = 0;
  int tasks = 1;
  int local_task = 0;   ///< among those of this host
  int local_tasks = 1;  ///< of this host
  int cpus = 0;         ///< that are this task's own; 0: nobody said
  /// Hosts of the job, that of task 0 first; empty: nobody said.
  std::vector<std::string> hosts{};
  std::string job{};        ///< the same for all tasks of this start, another for each; "": no name
  std::string meet_host{};  ///< where the platform wants the tasks to meet; empty: it does not say
  uint16_t meet_port = 0;

  bool one_output = true;  ///< what all tasks print comes out in one place

  [[nodiscard]] bool one_host() const { return local_tasks == tasks; }
};

/// A queue, an MPI, a platform.
class Cluster {
 public:
  virtual ~Cluster() = default;
  Cluster() = default;
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  Cluster(Cluster&&) = delete;
  Cluster& operator=(Cluster&&) = delete;

  /// nullopt: it did not start this process.
  /// Errors: ConfigError naming a variable that is not what it should be.
  [[nodiscard]] virtual std::optional<ClusterTask> task(const Lookup& lookup) const = 0;
  /// Its tasks are meant to be launchers, one for each node, and never ranks.
  [[nodiscard]] virtual bool starts_nodes() const { return false; }
};

/// Those that are known, in the order in which they are asked: inside a Slurm allocation mpirun's
/// daemons are Slurm's tasks, and the ranks inherit their variables.
[[nodiscard]] std::span<const std::unique_ptr<const Cluster>> known_clusters();

/// What the first of them says that started this process.
[[nodiscard]] std::optional<ClusterTask> find_task(const Lookup& lookup, bool launcher);

/// Where the tasks meet, when nobody says otherwise: the loopback where all share a host, else the
/// first host; a port below those that the kernel gives away, made from the job's name, so that all
/// come to the same one. "": the host is not known.
struct ClusterMeeting {
  std::string host{};
  uint16_t port = 0;
};
[[nodiscard]] ClusterMeeting meeting_of(const ClusterTask& task);

/// Inside a Slurm allocation (sbatch, salloc), but not one of its tasks: `srun` starts those.
[[nodiscard]] bool in_slurm_allocation(const Lookup& lookup);

/// "gpu[001-003,7],login1" → gpu001, gpu002, gpu003, gpu7, login1. Source: Slurm's host lists.
/// Errors: ConfigError.
[[nodiscard]] std::vector<std::string> expand_hosts(std::string_view list);

/// "2(x3),1" → 2, 2, 2, 1. Source: SLURM_TASKS_PER_NODE. Errors: ConfigError.
[[nodiscard]] std::vector<int> expand_counts(std::string_view list);

}  // namespace argosy::rendezvous
