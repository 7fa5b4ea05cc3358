#include "argosy/rendezvous/clusters/platforms.h"

#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/rendezvous/clusters/variables.h"
#include "argosy/rendezvous/endpoint.h"

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

namespace {

/// The hosts of "10.0.0.1:6170,10.0.0.2:6170", each once, in their order.
std::vector<std::string> hosts_of(const std::vector<std::string>& endpoints) {
  std::vector<std::string> hosts;
  for (const std::string& endpoint : endpoints) {
    std::string host =
        parse_endpoint("rendezvous.clusters", "PADDLE_TRAINER_ENDPOINTS", endpoint).host;
    if (std::ranges::count(hosts, host) == 0) {
      hosts.push_back(std::move(host));
    }
  }
  return hosts;
}

/// Nodes by their addresses, or by the endpoints of all trainers; the first is the master then.
struct Listed {
  std::string text{};
  std::vector<std::string> hosts{};
  std::optional<int> own{};  ///< node that the platform says this one is
  uint16_t port = 0;
};
std::optional<Listed> listed_nodes(const Lookup& lookup) {
  const std::optional<int> told = number(lookup, "PADDLE_TRAINER_ID");
  if (std::string list = text(lookup, {"PADDLE_TRAINERS", "TRAINER_IP_LIST"}); !list.empty()) {
    return Listed{.text = list, .hosts = strings::split(list, ','), .own = told};
  }
  const std::string list =
      text(lookup, {"PADDLE_TRAINER_ENDPOINTS", "DISTRIBUTED_TRAINER_ENDPOINTS"});
  if (list.empty()) {
    return std::nullopt;
  }
  const std::vector<std::string> endpoints = strings::split(list, ',');
  Listed listed{.text = list, .hosts = hosts_of(endpoints)};
  listed.port =
      parse_endpoint("rendezvous.clusters", "PADDLE_TRAINER_ENDPOINTS", endpoints[0]).port;
  if (told && static_cast<size_t>(*told) < endpoints.size()) {
    // The number is that of an endpoint, of which a host may have several.
    const auto at = static_cast<size_t>(*told);
    const std::string host = hosts_of({endpoints[at]}).front();
    listed.own = static_cast<int>(std::ranges::find(listed.hosts, host) - listed.hosts.begin());
  }
  return listed;
}

}  // namespace

std::optional<ClusterTask> PaddleCloud::task(const Lookup& lookup) const {
  if (lookup("PADDLE_LOCAL_RANK") || lookup("PADDLE_RANK_IN_NODE")) {
    return std::nullopt;  // another launcher's rank
  }
  const std::optional<Listed> listed = listed_nodes(lookup);
  if (!listed) {
    return std::nullopt;
  }
  const std::vector<std::string>& hosts = listed->hosts;
  const std::string own = text(lookup, {"POD_IP"});
  const auto place = std::ranges::find(hosts, own);
  if (!listed->own && place == hosts.end()) {
    throw ConfigError("rendezvous.clusters",
                      fmt::format("the nodes {} do not name POD_IP={}, and there is no "
                                  "PADDLE_TRAINER_ID: which of them is this one?",
                                  listed->text,
                                  own));
  }
  return ClusterTask{.system = "PaddleCloud",
                     .task = listed->own.value_or(static_cast<int>(place - hosts.begin())),
                     .tasks = static_cast<int>(hosts.size()),
                     .hosts = hosts,
                     .job = listed->text,
                     .meet_host = hosts.front(),
                     .meet_port = listed->port,
                     .one_output = false};
}

}  // namespace argosy::rendezvous::clusters
