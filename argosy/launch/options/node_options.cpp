#include "argosy/launch/options/node_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/launch/options/values.h"
#include "argosy/launch/remote/hostfile.h"

namespace argosy::launch {
namespace {

using values::bad;
using values::endpoint;
using values::HostPort;
using values::hosts;
using values::integer;
using values::is_on;
using values::node_count;
using values::seconds;

/// Of --ips or a host file; empty: neither is given.
std::vector<std::string> listed_nodes(const GivenOptions& given) {
  const std::optional<Given> ips = given.find("ips");
  const std::optional<Given> file = given.find("hostfile");
  if (ips && file) {
    throw UsageError("launch.options",
                     fmt::format("{} and {} both name the nodes", ips->source, file->source));
  }
  std::vector<std::string> list = ips ? hosts(*ips) : std::vector<std::string>();
  if (file) {
    for (const HostLine& line : read_hostfile(file->value)) {
      list.push_back(line.address());
    }
  }
  const std::optional<Given> count = given.find("nnodes");
  if (!list.empty() && count && node_count(*count) != static_cast<int>(list.size())) {
    const Given& source = ips ? *ips : *file;
    throw UsageError("launch.options",
                     fmt::format("{} {} names {} nodes, {} says {}",
                                 source.source,
                                 source.value,
                                 list.size(),
                                 count->source,
                                 count->value));
  }
  return list;
}

/// --rdzv_conf's settings that mean something here, by their names there: "a=1,b=2".
std::optional<Given> setting(const GivenOptions& given, std::string_view name) {
  const std::optional<Given> list = given.find("rdzv_conf");
  for (const std::string& piece : strings::split(list ? list->value : "", ',')) {
    const size_t equals = piece.find('=');
    if (equals != std::string::npos && strings::trim(piece.substr(0, equals)) == name) {
      return Given{std::string(strings::trim(piece.substr(equals + 1))),
                   fmt::format("{}: {}", list->source, name)};
    }
  }
  return std::nullopt;
}

/// How long nodes wait for each other, and when one that is silent is lost. torchrun's settings may
/// be larger than what means something here.
void settle_patience(const GivenOptions& given, NodeOptions& nodes) {
  const auto find = [&](std::string_view option, std::string_view name) {
    const std::optional<Given> torchruns =
        nodes.nodes > 1 ? setting(given, name) : std::nullopt;  // what one node has no use for
    const bool first = given.first_of({option, "rdzv_conf"}) == "rdzv_conf";
    const std::optional<Given> own = given.find(option);
    return torchruns && (first || !own) ? torchruns : own;
  };
  if (const auto timeout = find("timeout", "join_timeout")) {
    nodes.timeout = seconds(*timeout);
  }
  KeepAlive& keep_alive = nodes.keep_alive;
  if (const auto interval = find("keep_alive_interval", "keep_alive_interval")) {
    keep_alive.interval = seconds(*interval);
    if (keep_alive.interval < std::chrono::milliseconds(10)) {
      bad(*interval, "0.01 seconds or more");
    }
  }
  if (const auto attempts = find("keep_alive_max_attempt", "keep_alive_max_attempt")) {
    keep_alive.max_attempt = static_cast<int>(integer(*attempts, 2, 1000));
  }
  if (keep_alive.limit() <= KeepAlive::kLongest) {
    return;
  }
  if (given.has("keep_alive_interval") || given.has("keep_alive_max_attempt")) {
    throw UsageError(
        "launch.options",
        fmt::format("--keep_alive_interval times --keep_alive_max_attempt: expected {} s "
                    "at most, for then the connection itself is given up, got {} s",
                    KeepAlive::kLongest.count() / 1000,
                    keep_alive.limit().count() / 1000));
  }
  keep_alive = {.interval = KeepAlive::kLongest / 4, .max_attempt = 4};
}

}  // namespace

void settle_meeting(const GivenOptions& given, NodeOptions& nodes) {
  constexpr uint16_t kRendezvousPort = 29400;
  constexpr uint16_t kMasterPort = 29500;
  constexpr uint16_t kPaddlesFirstPort = 6070;
  HostPort place;
  const auto how = given.first_of({"rdzv_endpoint", "master", "master_addr", "ips", "hostfile"});
  if (how == "rdzv_endpoint") {
    place = endpoint(*given.find(*how));
    place.port = place.port == 0 ? kRendezvousPort : place.port;
  } else if (how == "master") {
    const auto master = given.find(*how);
    if (master->value.starts_with("etcd://")) {
      throw UsageError("launch.options",
                       fmt::format("{} {}: etcd does not work yet", master->source, master->value));
    }
    place = endpoint(*master);
    if (place.port == 0) {
      bad(*master, "host:port");
    }
  } else if (how == "master_addr") {
    place = {.host = given.find(*how)->value, .port = kMasterPort};
    if (const auto port = given.find("master_port")) {
      place.port = static_cast<uint16_t>(integer(*port, 1, 65535));
    }
  } else if (how == "ips" || how == "hostfile") {
    const auto first = given.find("start_port");
    place = {
        .host = nodes.ips.front(),
        .port = static_cast<uint16_t>((first ? integer(*first, 2, 65535) : kPaddlesFirstPort) - 1)};
  } else {
    throw UsageError(
        "launch.options",
        fmt::format("{} nodes need a place to meet, the same on each: --rdzv_endpoint "
                    "HOST:PORT, --master HOST:PORT, --ips A,B,…, or --master_addr HOST "
                    "with --node_rank N",
                    nodes.nodes));
  }
  nodes.meet_host = place.host;
  nodes.meet_port = place.port;
}

/// --standalone goes before what the environment says, not before what the same line says.
void refuse_several_nodes(const GivenOptions& given) {
  const auto on_the_line = [&](std::string_view key) {
    const std::optional<Given> found = given.find(key);
    return found && found->source.starts_with('-') ? found : std::nullopt;
  };
  const std::optional<Given> nodes = on_the_line("nnodes");
  const std::optional<Given> rank = on_the_line("node_rank");
  const std::optional<Given> list = on_the_line("ips");
  const std::optional<Given> other = nodes && node_count(*nodes) > 1         ? nodes
                                     : rank && integer(*rank, -1, 65535) > 0 ? rank
                                     : list && list->value.find(',') != std::string::npos
                                         ? list
                                         : std::nullopt;
  if (other) {
    throw UsageError(
        "launch.options",
        fmt::format(
            "--standalone is for one node, {} {} for several", other->source, other->value));
  }
}

NodeOptions read_node_options(const GivenOptions& given) {
  NodeOptions nodes;
  const bool by_ssh = is_on(given, "ssh");
  if (is_on(given, "standalone")) {
    if (by_ssh) {
      throw UsageError("launch.options",
                       "--ssh starts one job on several hosts, --standalone is for one");
    }
    refuse_several_nodes(given);
    return nodes;
  }
  const std::optional<Given> count = given.find("nnodes");
  nodes.nodes = count ? node_count(*count) : 1;
  if (std::vector<std::string> list = listed_nodes(given); !list.empty()) {
    nodes.nodes = static_cast<int>(list.size());
    nodes.ips = std::move(list);
  }
  const std::optional<Given> rank = given.find("node_rank");
  // An indexed Job of Kubernetes may have many pods without being one job of ours.
  const bool index_of_pods = rank && rank->source == "JOB_COMPLETION_INDEX" && nodes.nodes == 1;
  if (rank && !index_of_pods) {
    nodes.node_rank = static_cast<int>(integer(*rank, -1, 65535));  // -1: Paddle's "any"
    if (nodes.node_rank >= nodes.nodes) {
      throw UsageError("launch.options",
                       fmt::format("{} {} needs --nnodes {} or more{}",
                                   rank->source,
                                   nodes.node_rank,
                                   nodes.node_rank + 1,
                                   count ? "; node ranks count from 0" : ""));
    }
  }
  if (const std::optional<Given> address = given.find("host")) {
    nodes.address = address->value;
  }
  if (const std::optional<Given> interface = given.find("ifname")) {
    nodes.interface = interface->value;
  }
  if (const std::optional<Given> listen = given.find("listen")) {
    nodes.bind = listen->value;
  }
  settle_patience(given, nodes);
  if (by_ssh) {
    return {};  // its launchers are told where they meet
  }
  if (nodes.nodes > 1) {
    settle_meeting(given, nodes);
  }
  return nodes;
}

}  // namespace argosy::launch
