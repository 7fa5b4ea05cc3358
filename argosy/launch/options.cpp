#include "argosy/launch/options.h"

#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/launch/cluster_options.h"
#include "argosy/launch/remote/hostfile.h"
#include "argosy/os/addresses.h"

namespace argosy::launch {
namespace {

constexpr const char* kWhere = "launch.options";

[[noreturn]] void bad(const Given& given, std::string_view expected) {
  throw UsageError(kWhere,
                   fmt::format("{}: expected {}, got \"{}\"", given.source, expected, given.value));
}

int64_t integer(const Given& given, int64_t low, int64_t high) {
  const std::optional<int64_t> value = strings::parse_int(given.value);
  if (!value || *value < low || *value > high) {
    bad(given, fmt::format("a number from {} to {}", low, high));
  }
  return *value;
}

/// "0,2", "0, 2"
std::vector<int> numbers(const Given& given) {
  std::vector<int> list;
  for (const std::string& piece : strings::split(given.value, ',')) {
    const std::optional<int64_t> number = strings::parse_int(strings::trim(piece));
    if (!number || *number < 0 || *number > 65535 || std::ranges::count(list, *number) > 0) {
      bad(given, "different numbers with commas between them (0,2)");
    }
    list.push_back(static_cast<int>(*number));
  }
  return list;
}

/// "3", "0:3,1:1"
StreamChoice streams(const Given& given) {
  const auto which = [&](std::string_view text) {
    const std::optional<int64_t> number = strings::parse_int(strings::trim(text));
    if (!number || *number < 0 || *number > 3) {
      bad(given,
          "0 (none), 1 (standard output), 2 (standard error) or 3 (both), or such for each "
          "local rank (0:3,1:1)");
    }
    return static_cast<int>(*number);
  };
  StreamChoice choice;
  if (given.value.find(':') == std::string::npos) {
    choice.everyone = which(given.value);
    return choice;
  }
  for (const std::string& piece : strings::split(given.value, ',')) {
    const size_t colon = std::min(piece.find(':'), piece.size());
    const auto rank = strings::parse_int(strings::trim(std::string_view(piece).substr(0, colon)));
    if (!rank || *rank < 0 || colon == piece.size()) {
      bad(given, "local ranks with their streams (0:3,1:1)");
    }
    choice.ranks[static_cast<int>(*rank)] = which(std::string_view(piece).substr(colon + 1));
  }
  return choice;
}

bool truth(const Given& given) {
  const std::string word = strings::to_lower(given.value);
  if (word == "1" || word == "true" || word == "yes" || word == "on") {
    return true;
  }
  if (word == "0" || word == "false" || word == "no" || word == "off") {
    return false;
  }
  bad(given, "nothing, true or false");
}

std::chrono::milliseconds seconds(const Given& given) {
  constexpr double kMost = 86400;
  const std::optional<double> value = strings::parse_double(given.value);
  if (!value || !(*value >= 0 && *value <= kMost)) {
    bad(given, fmt::format("seconds from 0 to {}", kMost));
  }
  return std::chrono::milliseconds(static_cast<int64_t>(*value * 1000.0));
}

std::pair<std::string, std::string> assignment(const Given& given) {
  const size_t equals = given.value.find('=');
  if (equals == std::string::npos || equals == 0) {
    bad(given, "NAME=VALUE");
  }
  return {given.value.substr(0, equals), given.value.substr(equals + 1)};
}

/// "2", "2:2"; a range is for jobs that grow and shrink.
int node_count(const Given& given) {
  const size_t colon = given.value.find(':');
  if (colon == std::string::npos) {
    return static_cast<int>(integer(given, 1, 65536));
  }
  if (given.value.substr(0, colon) != given.value.substr(colon + 1)) {
    throw UsageError(
        kWhere,
        fmt::format("{} {}: a job that grows and shrinks does not work yet. Expected a "
                    "number",
                    given.source,
                    given.value));
  }
  return static_cast<int>(integer({given.value.substr(0, colon), given.source}, 1, 65536));
}

struct HostPort {
  std::string host{};
  uint16_t port = 0;  ///< 0: not said
};

/// "host", "host:29500", "[::1]:29500"
HostPort endpoint(const Given& given) {
  const size_t colon = given.value.rfind(':');
  const bool has_port =
      colon != std::string::npos &&
      (given.value.find(':') == colon || (colon > 0 && given.value[colon - 1] == ']'));
  HostPort place{.host = given.value.substr(0, has_port ? colon : std::string::npos)};
  if (place.host.size() > 2 && place.host.front() == '[' && place.host.back() == ']') {
    place.host = place.host.substr(1, place.host.size() - 2);
  }
  if (place.host.empty()) {
    bad(given, "host:port");
  }
  if (has_port) {
    place.port =
        static_cast<uint16_t>(integer({given.value.substr(colon + 1), given.source}, 0, 65535));
  }
  return place;
}

std::vector<std::string> hosts(const Given& given) {
  std::vector<std::string> list;
  for (const std::string& piece : strings::split(given.value, ',')) {
    list.emplace_back(strings::trim(piece));
    if (list.back().empty() || std::ranges::count(list, list.back()) > 1) {
      bad(given, "different addresses with commas between them");
    }
  }
  return list;
}

/// Ours, and what torchrun's --numa_binding calls the same.
os::CpuBinding cpu_binding(const Given& given) {
  const std::string word = strings::to_lower(given.value);
  if (word == "none") {
    return os::CpuBinding::kNone;
  }
  if (word == "cores" || word == "exclusive") {
    return os::CpuBinding::kCores;
  }
  if (word == "numa" || word == "node") {
    return os::CpuBinding::kNuma;
  }
  if (word == "socket") {
    return os::CpuBinding::kSocket;
  }
  bad(given, "none, cores (or exclusive), numa (or node) or socket");
}

/// Reads one option after the other out of what was given.
class Reader {
 public:
  explicit Reader(const GivenOptions& given) : given_(given) {}

  template <typename T, typename Read>
  void value(std::string_view key, T& into, Read read) const {
    if (const std::optional<Given> found = given_.find(key)) {
      into = static_cast<T>(read(*found));
    }
  }
  void text(std::string_view key, std::string& into) const {
    value(key, into, [](const Given& found) { return found.value; });
  }
  void flag(std::string_view key, bool& into) const { value(key, into, truth); }

 private:
  const GivenOptions& given_;
};

}  // namespace

bool is_on(const GivenOptions& given, std::string_view key) {
  const std::optional<Given> found = given.find(key);
  return found && truth(*found);
}

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
      throw UsageError(kWhere,
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
        kWhere,
        fmt::format("{} nodes need a place to meet, the same on each: --rdzv_endpoint "
                    "HOST:PORT, --master HOST:PORT, --ips A,B,…, or --master_addr HOST "
                    "with --node_rank N",
                    nodes.nodes));
  }
  nodes.meet_host = place.host;
  nodes.meet_port = place.port;
}

namespace {

/// Of --ips or a host file; empty: neither is given.
std::vector<std::string> listed_nodes(const GivenOptions& given) {
  const std::optional<Given> ips = given.find("ips");
  const std::optional<Given> file = given.find("hostfile");
  if (ips && file) {
    throw UsageError(kWhere,
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
    throw UsageError(kWhere,
                     fmt::format("{} {} names {} nodes, {} says {}",
                                 source.source,
                                 source.value,
                                 list.size(),
                                 count->source,
                                 count->value));
  }
  return list;
}

NodeOptions node_options(const GivenOptions& given) {
  NodeOptions nodes;
  const bool by_ssh = is_on(given, "ssh");
  if (is_on(given, "standalone")) {
    if (by_ssh) {
      throw UsageError(kWhere, "--ssh starts one job on several hosts, --standalone is for one");
    }
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
      throw UsageError(kWhere,
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
  if (const std::optional<Given> bind = given.find("bind")) {
    nodes.bind = bind->value;
  }
  if (const std::optional<Given> timeout = given.find("timeout")) {
    nodes.timeout = seconds(*timeout);
  }
  if (by_ssh) {
    return {};  // its launchers are told where they meet
  }
  if (nodes.nodes > 1) {
    settle_meeting(given, nodes);
  }
  return nodes;
}

LaunchOptions defaults(Dialect dialect) {
  LaunchOptions options;
  options.dialect = dialect;
  if (dialect == Dialect::kPaddle) {
    options.rank_per_gpu = true;
    options.log_dir = "log";
    options.layout = LogLayout::kPaddle;
  }
  return options;
}

/// Values for which there is nothing here.
void refuse_what_is_not_here(const GivenOptions& given) {
  const auto refuse = [](const Given& what, const char* why) {
    throw UsageError(kWhere, fmt::format("{} {}: {}", what.source, what.value, why));
  };
  const std::optional<Given> mode = given.find("run_mode");
  if (mode && strings::to_lower(mode->value) != "collective") {
    refuse(*mode, "only collective training exists here; parameter servers and RPC do not");
  }
  const std::optional<Given> backend = given.find("rdzv_backend");
  if (backend && backend->value != "static" && backend->value != "c10d") {
    refuse(*backend,
           "the nodes meet in the launcher of node 0 (static, c10d); etcd does not work yet");
  }
  if (is_on(given, "legacy")) {
    refuse(*given.find("legacy"), "there is no former launcher to fall back to");
  }
}

/// Ranks that the host file has for this host; "": it does not say, or does not name it.
std::string slots_of_this_host(const Given& file) {
  for (const HostLine& line : read_hostfile(file.value)) {
    const Result<bool> ours = os::is_this_host(line.address());
    if (line.slots > 0 && ours.ok() && *ours) {
      return std::to_string(line.slots);
    }
  }
  return "";
}

LaunchOptions resolve(const GivenOptions& given, Dialect dialect) {
  LaunchOptions options = defaults(dialect);
  const Reader read(given);
  read.text("nproc_per_node", options.nproc_per_node);
  const std::optional<Given> file = given.find("hostfile");
  if (file && !is_on(given, "ssh")) {
    options.nproc_per_node =
        options.nproc_per_node.empty() ? slots_of_this_host(*file) : options.nproc_per_node;
  }
  read.value("gpus", options.gpus, numbers);
  for (const Given& entry : given.all("env")) {
    options.env.push_back(assignment(entry));
  }
  read.text("role", options.role);
  read.value("cpu_bind", options.cpu_bind, cpu_binding);
  read.value(
      "master_port", options.master_port, [](const Given& g) { return integer(g, 1, 65535); });
  read.text("rdzv_id", options.job_id);
  options.nodes = node_options(given);
  if (options.nodes.nodes > 1) {
    options.master_port = 0;  // the launchers meet at the one that was given
  }
  refuse_what_is_not_here(given);

  read.text("log_dir", options.log_dir);
  options.log_dir_given = given.has("log_dir");
  read.value("redirects", options.redirects, streams);
  read.value("tee", options.tee, streams);
  read.flag("log_overwrite", options.log_overwrite);
  if (options.redirects.any() || options.tee.any()) {
    options.layout = LogLayout::kTorchrun;
  }
  read.value("local_ranks_filter", options.local_ranks_filter, numbers);
  read.text("log_line_prefix_template", options.line_prefix);
  read.text("json", options.json);
  read.text("hostfile", options.hostfile);
  read.flag("ssh", options.ssh);
  read.flag("leash", options.leash);
  if (options.ssh && options.hostfile.empty()) {
    throw UsageError(kWhere, "--ssh needs the hosts: --hostfile FILE");
  }
  read.flag("dry_run", options.dry_run);
  read.flag("verbose", options.verbose);

  read.value("max_restarts", options.max_restarts, [](const Given& found) {
    return integer(found, 0, 1'000'000);
  });
  read.flag("restart_usage_errors", options.restart_usage_errors);
  read.value("shutdown_timeout", options.shutdown_timeout, seconds);
  read.value("heartbeat_timeout", options.heartbeat_timeout, seconds);
  read.flag("module", options.module);
  read.flag("no_python", options.no_python);
  options.pass_local_rank = dialect == Dialect::kTorchLaunch;
  if (is_on(given, "use_env")) {
    options.pass_local_rank = false;
  }
  if (options.module && options.no_python) {
    throw UsageError(kWhere,
                     "--module and --no_python contradict each other: a module needs Python");
  }
  return options;
}

std::string purpose_of(Dialect dialect) {
  const std::string all = "Start a program as several ranks on this node and watch over them";
  switch (dialect) {
    case Dialect::kTorchrun:
      return all + ", for a line that was written for torchrun: queues are not asked.";
    case Dialect::kTorchLaunch:
      return all +
             ", for a line that was written for python -m torch.distributed.launch: the program "
             "gets --local_rank=N too, unless --use_env is given.";
    case Dialect::kPaddle:
      return all +
             ", for a line that was written for python -m paddle.distributed.launch: one rank for "
             "each GPU, logs in log/workerlog.<local rank>.";
    default:
      return all + ".";
  }
}

}  // namespace

std::string command_of(Dialect dialect) {
  switch (dialect) {
    case Dialect::kTorchrun:
      return "torchrun";
    case Dialect::kTorchLaunch:
      return "torch-launch";
    case Dialect::kPaddle:
      return "paddle-launch";
    default:
      return "launch";
  }
}

ParsedLaunch parse_launch(const std::vector<std::string>& args,
                          const Lookup& lookup,
                          Dialect dialect) {
  CommandLine line = read_command_line(args);
  if (line.help) {
    return {.help = launch_help(command_of(dialect), purpose_of(dialect))};
  }
  read_variables(line.options, lookup);
  ParsedLaunch parsed{.options = resolve(line.options, dialect)};
  // torchrun knows nothing of queues: a line that was written for it says all it needs.
  if (dialect == Dialect::kArgosy || dialect == Dialect::kPaddle) {
    settle_cluster(line.options, lookup, parsed.options);
  }
  parsed.given = line.options;
  parsed.options.command = std::move(line.command);
  if (parsed.options.command.empty() || parsed.options.command.front().empty()) {
    throw UsageError(kWhere,
                     "no program given: expected argosy launch [options] program [arguments]. "
                     "See: argosy launch --help");
  }
  return parsed;
}

}  // namespace argosy::launch
