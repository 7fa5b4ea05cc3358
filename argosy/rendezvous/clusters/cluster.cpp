#include "argosy/rendezvous/clusters/cluster.h"

#include <fmt/format.h>

#include <array>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/rendezvous/clusters/mpi.h"
#include "argosy/rendezvous/clusters/platforms.h"
#include "argosy/rendezvous/clusters/slurm.h"
#include "argosy/rendezvous/clusters/variables.h"

namespace argosy::rendezvous {
namespace clusters {

std::optional<int> number(const Lookup& lookup, const char* name, int low) {
  constexpr int64_t kMost = 1 << 20;
  const std::optional<std::string> given = lookup(name);
  if (!given) {
    return std::nullopt;
  }
  const std::optional<int64_t> value = strings::parse_int(*given);
  if (!value || *value < low || *value > kMost) {
    throw ConfigError(
        "rendezvous.clusters",
        fmt::format("{}={}: expected a whole number from {} to {}", name, *given, low, kMost));
  }
  return static_cast<int>(*value);
}

int required(const Lookup& lookup, const char* name, int low) {
  const std::optional<int> value = number(lookup, name, low);
  if (!value) {
    throw ConfigError("rendezvous.clusters",
                      fmt::format("{} is not set, though variables beside it are: unset them, or "
                                  "start this process as they say",
                                  name));
  }
  return *value;
}

std::string text(const Lookup& lookup, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const std::optional<std::string> value = lookup(name)) {
      return *value;
    }
  }
  return "";
}

}  // namespace clusters

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
