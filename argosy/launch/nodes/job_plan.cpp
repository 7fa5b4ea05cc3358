#include "argosy/launch/nodes/job_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "argosy/base/error.h"
#include "argosy/os/addresses.h"

#include <nlohmann/json.hpp>

namespace argosy::launch {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(NodeInfo,
                                   wanted_rank,
                                   host,
                                   address,
                                   pid,
                                   ranks,
                                   servers,
                                   nodes,
                                   ips,
                                   master_port,
                                   endpoint_ports,
                                   version,
                                   run_id,
                                   job_id,
                                   grace_ms,
                                   same_ranks)
// Found by the library through the type's namespace.
static void to_json(nlohmann::json& to, const KeepAlive& from) {
  to = {{"interval_ms", from.interval.count()}, {"max_attempt", from.max_attempt}};
}
static void from_json(const nlohmann::json& from, KeepAlive& to) {
  to.interval = std::chrono::milliseconds(from.at("interval_ms").get<int64_t>());
  from.at("max_attempt").get_to(to.max_attempt);
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(JobPlan::Node, host, address, pid, first_rank, ranks, servers)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(JobPlan,
                                   run_id,
                                   nodes,
                                   master_host,
                                   master_port,
                                   endpoints,
                                   node_of_arrival,
                                   grace_ms,
                                   keep_alive,
                                   refusal)

namespace {

using nlohmann::json;

template <typename T>
T parse(const std::string& text, const char* what) {
  try {
    return json::parse(text).get<T>();
  } catch (const json::exception& error) {
    throw RendezvousError(
        "launch.nodes",
        fmt::format("what another launcher says of {} cannot be read: {}. Are all "
                    "of the same version?",
                    what,
                    error.what()));
  }
}

/// "node 1 (gpu02, pid 4127)": by arrival, for the node ranks are what is in question.
std::string name(const NodeInfo& node) {
  return fmt::format("{} ({}, pid {})", node.host, node.address, node.pid);
}

std::optional<std::string> find_difference(const std::vector<NodeInfo>& arrived) {
  const NodeInfo& first = arrived.front();
  for (const NodeInfo& other : arrived) {
    if (other.version != first.version) {
      return fmt::format("{} runs argosy {}, {} runs {}: install the same version on all nodes",
                         name(first),
                         first.version,
                         name(other),
                         other.version);
    }
    if (other.job_id != first.job_id) {
      return fmt::format(
          "{} belongs to job \"{}\", {} to \"{}\" (--rdzv_id, --job_id): another port "
          "for each job",
          name(first),
          first.job_id,
          name(other),
          other.job_id);
    }
    if (other.nodes != first.nodes) {
      return fmt::format(
          "{} was told of {} nodes, {} of {}", name(first), first.nodes, name(other), other.nodes);
    }
    if ((first.same_ranks || other.same_ranks) && other.ranks != first.ranks) {
      return fmt::format(
          "{} starts {} ranks, {} starts {}: torchrun's programs expect the same number on all "
          "nodes "
          "(--nproc_per_node); argosy launch takes different ones",
          name(first),
          first.ranks,
          name(other),
          other.ranks);
    }
    if ((other.servers < 0) != (first.servers < 0)) {
      return fmt::format("{} starts {}, {} {}: give --run_mode ps to all nodes or to none",
                         name(first),
                         first.servers < 0 ? "ranks" : "servers and workers",
                         name(other),
                         other.servers < 0 ? "ranks" : "servers and workers");
    }
    if (other.ips != first.ips) {
      return fmt::format(
          "{} was given --ips {}, {} was given --ips {}: the same list, in the same "
          "order, belongs on every node",
          name(first),
          fmt::join(first.ips, ","),
          name(other),
          fmt::join(other.ips, ","));
    }
  }
  return std::nullopt;
}

/// In a job with servers: that there are some, and workers too.
std::optional<std::string> find_missing_role(const std::vector<NodeInfo>& arrived) {
  int servers = 0;
  int workers = 0;
  for (const NodeInfo& node : arrived) {
    if (node.servers < 0) {
      return std::nullopt;
    }
    servers += node.servers;
    workers += node.ranks - node.servers;
  }
  if (servers > 0 && workers > 0) {
    return std::nullopt;
  }
  return fmt::format("none of {} nodes starts a {}: see --{}_num",
                     arrived.size(),
                     servers == 0 ? "server" : "worker",
                     servers == 0 ? "server" : "worker");
}

/// The rank that a node asks for: by option, or by its place in --ips; -1: none.
int asked_rank(const NodeInfo& node) {
  if (node.wanted_rank >= 0) {
    return node.wanted_rank;
  }
  const auto place = std::ranges::find(node.ips, node.address);
  return place == node.ips.end() ? -1 : static_cast<int>(place - node.ips.begin());
}

/// Arrivals by node rank, or why there is no such order.
struct Order {
  std::vector<const NodeInfo*> nodes{};
  std::string refusal{};
};

Order put_in_order(const std::vector<NodeInfo>& arrived) {
  Order order{.nodes = std::vector<const NodeInfo*>(arrived.size(), nullptr)};
  for (const NodeInfo& node : arrived) {
    const int rank = asked_rank(node);
    if (rank >= static_cast<int>(arrived.size())) {
      order.refusal = fmt::format("{} asks for node rank {} of a job of {} nodes: expected 0 to {}",
                                  name(node),
                                  rank,
                                  arrived.size(),
                                  arrived.size() - 1);
      return order;
    }
    if (rank >= 0 && order.nodes[static_cast<size_t>(rank)] != nullptr) {
      order.refusal = fmt::format("node rank {} is asked for twice: by {} and by {}",
                                  rank,
                                  name(*order.nodes[static_cast<size_t>(rank)]),
                                  name(node));
      return order;
    }
    if (rank >= 0) {
      order.nodes[static_cast<size_t>(rank)] = &node;
    }
  }
  for (const NodeInfo& node : arrived) {
    if (asked_rank(node) < 0) {
      *std::ranges::find(order.nodes, nullptr) = &node;
    }
  }
  return order;
}

void add_node(JobPlan& plan, const NodeInfo& node) {
  plan.nodes.push_back({.host = node.host,
                        .address = node.address,
                        .pid = node.pid,
                        .first_rank = plan.world_size(),
                        .ranks = node.ranks,
                        .servers = node.servers});
  plan.grace_ms = std::max(plan.grace_ms, node.grace_ms);
  for (const uint16_t port : node.endpoint_ports) {
    plan.endpoints.push_back(os::host_port(node.address, port));
  }
}

}  // namespace

std::string NodeInfo::to_json() const {
  return json(*this).dump();
}

NodeInfo NodeInfo::from_json(const std::string& text) {
  return parse<NodeInfo>(text, "its node");
}

std::string JobPlan::to_json() const {
  return json(*this).dump();
}

JobPlan JobPlan::from_json(const std::string& text) {
  return parse<JobPlan>(text, "the job");
}

int JobPlan::node_of(int rank) const {
  for (size_t i = nodes.size(); i-- > 0;) {
    if (rank >= nodes[i].first_rank) {
      return static_cast<int>(i);
    }
  }
  return 0;
}

JobPlan make_plan(const std::vector<std::optional<NodeInfo>>& arrived, const std::string& run_id) {
  std::vector<NodeInfo> there;
  for (const std::optional<NodeInfo>& node : arrived) {
    if (node) {
      there.push_back(*node);
    }
  }
  if (const std::optional<std::string> difference = find_difference(there)) {
    return {.refusal = *difference};
  }
  if (const std::optional<std::string> missing = find_missing_role(there)) {
    return {.refusal = *missing};
  }
  const Order order = put_in_order(there);
  if (!order.refusal.empty()) {
    return {.refusal = order.refusal};
  }
  JobPlan plan{.run_id = run_id,
               .master_host = order.nodes.front()->address,
               .master_port = order.nodes.front()->master_port};
  for (const NodeInfo* node : order.nodes) {
    add_node(plan, *node);
  }
  size_t next = 0;
  for (const std::optional<NodeInfo>& node : arrived) {
    const auto place = node ? std::ranges::find(order.nodes, &there[next++]) : order.nodes.end();
    plan.node_of_arrival.push_back(node ? static_cast<int>(place - order.nodes.begin()) : -1);
  }
  return plan;
}

}  // namespace argosy::launch
