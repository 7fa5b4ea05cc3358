#include "argosy/rendezvous/clusters/platforms.h"

#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/rendezvous/clusters/variables.h"

namespace argosy::rendezvous::clusters {

std::optional<ClusterTask> PyTorchJob::task(const Lookup& lookup) const {
  const bool here = lookup("KUBERNETES_SERVICE_HOST") && lookup("MASTER_ADDR") &&
                    lookup("MASTER_PORT") && lookup("RANK") && lookup("WORLD_SIZE");
  // With LOCAL_RANK, a launcher in this pod has set them, and this is one of its ranks.
  if (!here || lookup("LOCAL_RANK")) {
    return std::nullopt;
  }
  return ClusterTask{.system = "Kubeflow",
                     .task = required(lookup, "RANK"),
                     .tasks = required(lookup, "WORLD_SIZE", 1),
                     .meet_host = text(lookup, {"MASTER_ADDR"}),
                     .meet_port = static_cast<uint16_t>(required(lookup, "MASTER_PORT", 1)),
                     .one_output = false};
}

std::optional<ClusterTask> PaddleCloud::task(const Lookup& lookup) const {
  const std::string list = text(lookup, {"PADDLE_TRAINERS", "TRAINER_IP_LIST"});
  if (list.empty() || lookup("PADDLE_LOCAL_RANK")) {
    return std::nullopt;
  }
  const std::vector<std::string> hosts = strings::split(list, ',');
  const std::string own = text(lookup, {"POD_IP"});
  const auto place = std::ranges::find(hosts, own);
  const std::optional<int> told = number(lookup, "PADDLE_TRAINER_ID");
  if (!told && place == hosts.end()) {
    throw ConfigError("rendezvous.clusters",
                      fmt::format("PADDLE_TRAINERS={} does not name POD_IP={}, and there is no "
                                  "PADDLE_TRAINER_ID: which of the nodes is this one?",
                                  list,
                                  own));
  }
  return ClusterTask{.system = "PaddleCloud",
                     .task = told.value_or(static_cast<int>(place - hosts.begin())),
                     .tasks = static_cast<int>(hosts.size()),
                     .hosts = hosts,
                     .job = list,
                     .meet_host = hosts.front(),
                     .one_output = false};
}

}  // namespace argosy::rendezvous::clusters
