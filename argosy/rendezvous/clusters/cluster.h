#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "argosy/rendezvous/environment.h"

// Reads what queues and MPI tell the processes that they start. Sources: the environments of real
// jobs (Slurm 22.05, OpenMPI 4.1, MPICH 4.0), recorded in clusters_test.cpp.
namespace argosy::rendezvous {

/// The place of this process among the tasks that a queue or an mpirun has started.
struct ClusterTask {
  std::string system{};  ///< "Slurm", "OpenMPI", …
  int task = 0;
  int tasks = 1;
  int local_task = 0;   ///< number among the tasks of this host
  int local_tasks = 1;  ///< tasks on this host
  int cpus = 0;         ///< CPUs that only this task may use; 0: not known
  /// The hosts of the job; the host of task 0 comes first. Empty: not known.
  std::vector<std::string> hosts{};
  std::string job{};        ///< a name of this start, equal on all its tasks; "": it has none
  std::string meet_host{};  ///< the platform's meeting place for the tasks; "": it names none
  uint16_t meet_port = 0;

  bool one_output = true;  ///< all tasks share one output

  [[nodiscard]] bool one_host() const { return local_tasks == tasks; }
};

/// A system that starts processes: a queue, an MPI or a platform.
class Cluster {
 public:
  virtual ~Cluster() = default;
  Cluster() = default;
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  Cluster(Cluster&&) = delete;
  Cluster& operator=(Cluster&&) = delete;

  /// Returns nullopt when this system did not start this process.
  /// Errors: ConfigError naming a variable that is not what it should be.
  [[nodiscard]] virtual std::optional<ClusterTask> task(const Lookup& lookup) const = 0;
  /// True if its tasks are launchers, one on each node, and never ranks.
  [[nodiscard]] virtual bool starts_nodes() const { return false; }
};

/// Returns the systems that are known, in the order in which they are asked. MPI comes before
/// Slurm: inside an allocation mpirun's daemons are Slurm's tasks, and the ranks inherit their
/// variables.
[[nodiscard]] std::span<const std::unique_ptr<const Cluster>> known_clusters();

/// What a process wants to be.
enum class TaskFor { kRank, kLauncher };

/// Returns the task of the first system that started this process. Systems that start nodes are
/// asked for a launcher only.
[[nodiscard]] std::optional<ClusterTask> find_task(const Lookup& lookup, TaskFor purpose);

/// Where the tasks meet when nobody says otherwise.
struct ClusterMeeting {
  std::string host{};  ///< loopback when all tasks share a host, else the first; "": not known
  /// Made from the job's name, so that all tasks come to the same one. It lies below the ports that
  /// the kernel gives away.
  uint16_t port = 0;
};
[[nodiscard]] ClusterMeeting meeting_of(const ClusterTask& task);

/// True inside a Slurm allocation (sbatch, salloc) if this process is none of its tasks, which only
/// `srun` starts.
[[nodiscard]] bool in_slurm_allocation(const Lookup& lookup);

}  // namespace argosy::rendezvous
