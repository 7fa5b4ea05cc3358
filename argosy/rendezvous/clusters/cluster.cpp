#include "argosy/rendezvous/clusters/cluster.h"

#include <fmt/format.h>

#include <array>

#include "argosy/base/error.h"
#include "argosy/rendezvous/clusters/mpi.h"
#include "argosy/rendezvous/clusters/platforms.h"
#include "argosy/rendezvous/clusters/slurm.h"

namespace argosy::rendezvous {

std::span<const std::unique_ptr<const Cluster>> known_clusters() {
  static const std::array<std::unique_ptr<const Cluster>, 5> all{
      std::make_unique<clusters::OpenMpi>(),
      std::make_unique<clusters::Mpich>(),
      std::make_unique<clusters::Slurm>(),
      std::make_unique<clusters::PyTorchJob>(),
      std::make_unique<clusters::PaddleCloud>()};
  return all;
}

std::optional<ClusterTask> find_task(const Lookup& lookup, TaskFor purpose) {
  for (const std::unique_ptr<const Cluster>& cluster : known_clusters()) {
    if (cluster->starts_nodes() && purpose != TaskFor::kLauncher) {
      continue;
    }
    if (std::optional<ClusterTask> task = cluster->task(lookup)) {
      if (task->task >= task->tasks || task->local_task >= task->local_tasks) {
        throw ConfigError("rendezvous.clusters",
                          fmt::format("{} says task {} of {}, local task {} of {}: expected tasks "
                                      "below their number",
                                      task->system,
                                      task->task,
                                      task->tasks,
                                      task->local_task,
                                      task->local_tasks));
      }
      return task;
    }
  }
  return std::nullopt;
}

ClusterMeeting meeting_of(const ClusterTask& task) {
  constexpr uint32_t kLowest = 15000;
  constexpr uint32_t kPorts = 17000;  // up to 32,000: the kernel gives away those from 32,768 on
  uint32_t hash = 2166136261U;        // FNV-1a: the same on every machine
  for (const char letter : task.job) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  }
  const std::string host = !task.meet_host.empty() ? task.meet_host
                           : task.one_host()       ? "127.0.0.1"
                           : task.hosts.empty()    ? ""
                                                   : task.hosts.front();
  return {host,
          task.meet_port != 0 ? task.meet_port : static_cast<uint16_t>(kLowest + hash % kPorts)};
}

}  // namespace argosy::rendezvous
