#include "argosy/launch/options.h"

#include <fmt/format.h>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/launch/cluster_options.h"
#include "argosy/launch/options/values.h"
#include "argosy/launch/remote/hostfile.h"
#include "argosy/os/addresses.h"

namespace argosy::launch {
namespace {

using values::assignment;
using values::cpu_binding;
using values::cpu_capability;
using values::integer;
using values::is_on;
using values::numbers;
using values::seconds;
using values::streams;
using values::texts;
using values::truth;

/// What tells the ranks apart cannot be the same for all.
void refuse_own_variable(const std::string& name) {
  constexpr auto kOwn = std::to_array<std::string_view>(
      {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "PADDLE_TRAINER_ID"});
  if (std::ranges::count(kOwn, name) > 0) {
    throw UsageError("launch.options",
                     fmt::format("--env {}=…: each rank has its own {}", name, name));
  }
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
    throw UsageError("launch.options", fmt::format("{} {}: {}", what.source, what.value, why));
  };
  const std::optional<Given> mode = given.find("run_mode");
  const std::string kind = mode ? strings::to_lower(mode->value) : "collective";
  if (kind == "ps-heter") {
    refuse(*mode,
           "heterogeneous parameter servers are part of Paddle; expected collective, ps or rpc");
  }
  if (kind != "collective" && kind != "rpc" && kind != "ps") {
    refuse(*mode, "expected collective, ps or rpc");
  }
  const std::optional<Given> backend = given.find("rdzv_backend");
  if (backend && backend->value != "static" && backend->value != "c10d") {
    refuse(*backend,
           "the nodes meet in the launcher of node 0 (static, c10d); etcd does not work yet");
  }
  if (is_on(given, "sort_ip")) {
    refuse(*given.find("sort_ip"),
           "nodes are numbered by --node_rank, by the order of --ips, or as they come");
  }
  if (is_on(given, "legacy")) {
    refuse(*given.find("legacy"), "there is no former launcher to fall back to");
  }
}

/// Whose of these this node starts.
int count_here(const Given& given) {
  int count = 0;
  for (const values::HostPort& one : values::endpoints(given)) {
    count += os::is_this_host(one.host).or_throw<ConfigError>("launch.options") ? 1 : 0;
  }
  return count;
}

/// Makes --ips of --servers and --workers, which name the nodes as often as they have processes.
void read_server_lists(GivenOptions& given) {
  const std::optional<Given> servers = given.find("servers");
  const std::optional<Given> workers = given.find("workers");
  if (!servers && !workers) {
    return;
  }
  if (!servers || !workers) {
    throw UsageError("launch.options",
                     fmt::format("{} {}: expected --servers and --workers, with HOST:PORT of each",
                                 servers ? servers->source : workers->source,
                                 servers ? servers->value : workers->value));
  }
  for (const char* other : {"server_num", "worker_num", "ips", "hostfile"}) {
    if (const std::optional<Given> both = given.find(other)) {
      throw UsageError(
          "launch.options",
          fmt::format("{} and {} both say what starts where", servers->source, both->source));
    }
  }
  std::vector<std::string> hosts;
  for (const Given* list : {&*servers, &*workers}) {
    for (const values::HostPort& one : values::endpoints(*list)) {
      if (std::ranges::count(hosts, one.host) == 0) {
        hosts.push_back(one.host);
      }
    }
  }
  given.set("server_num", {std::to_string(count_here(*servers)), servers->source});
  given.set("worker_num", {std::to_string(count_here(*workers)), workers->source});
  if (hosts.size() > 1) {
    given.set("ips", {fmt::format("{}", fmt::join(hosts, ",")), servers->source});
  }
}

/// --run_mode ps, or a number of servers or workers.
void read_servers(const GivenOptions& given, LaunchOptions& options) {
  const std::optional<Given> mode = given.find("run_mode");
  if (!given.has("server_num") && !given.has("worker_num") &&
      (!mode || strings::to_lower(mode->value) != "ps")) {
    return;
  }
  const int fewest = options.nodes.nodes > 1 ? 0 : 1;  // a node may have workers alone
  const auto number = [&](std::string_view key) {
    constexpr int kMost = 4096;
    const std::optional<Given> found = given.find(key);
    return static_cast<int>(found ? integer(*found, fewest, kMost) : 1);
  };
  const int servers = number("server_num");
  const int workers = number("worker_num");
  if (given.has("nproc_per_node")) {
    throw UsageError("launch.options",
                     "--nproc_per_node and --server_num contradict each other: give --server_num "
                     "and --worker_num");
  }
  if (servers + workers == 0) {
    throw UsageError("launch.options", "this node starts no server and no worker");
  }
  options.servers = servers;
  options.nproc_per_node = std::to_string(servers + workers);
  if (!given.has("log_line_prefix_template")) {
    options.line_prefix = "[${role_name} ${rank}] ";
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

rendezvous::TlsChoice tls_choice(const GivenOptions& given) {
  const auto text = [&](std::string_view key) {
    const std::optional<Given> found = given.find(key);
    return found ? found->value : std::string();
  };
  const std::optional<Given> said = given.find("tls");
  return rendezvous::settle_tls(said ? std::optional(truth(*said)) : std::nullopt,
                                {.certificate_file = text("tls_cert"),
                                 .key_file = text("tls_key"),
                                 .authority_file = text("tls_ca"),
                                 .name = text("tls_name")});
}

LaunchOptions resolve(GivenOptions given, Dialect dialect) {
  LaunchOptions options = defaults(dialect);
  read_server_lists(given);
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
    refuse_own_variable(options.env.back().first);
  }
  read.text("role", options.role);
  read.value("cpu_bind", options.cpu_bind, cpu_binding);
  read.value("cpu_capability", options.cpu_capability, cpu_capability);
  read.value(
      "master_port", options.master_port, [](const Given& g) { return integer(g, 1, 65535); });
  read.text("rdzv_id", options.job_id);
  options.nodes = read_node_options(given);
  options.tls = tls_choice(given);
  if (options.nodes.nodes > 1) {
    options.master_port = 0;  // the launchers meet at the one that was given
  }
  refuse_what_is_not_here(given);
  read_servers(given, options);

  read.text("log_dir", options.log_dir);
  options.log_dir_given = given.has("log_dir");
  read.value("redirects", options.redirects, streams);
  read.value("tee", options.tee, streams);
  read.value("duplicate_stdout_filters", options.out_filters, texts);
  read.value("duplicate_stderr_filters", options.err_filters, texts);
  if (options.log_dir.empty() && !(options.out_filters.empty() && options.err_filters.empty())) {
    throw UsageError("launch.options",
                     "--duplicate_*_filters write to files, and --log_dir \"\" makes none");
  }
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
    throw UsageError("launch.options", "--ssh needs the hosts: --hostfile FILE");
  }
  read.flag("dry_run", options.dry_run);
  read.flag("verbose", options.verbose);

  read.value("max_restarts", options.max_restarts, [](const Given& found) {
    return integer(found, 0, 1'000'000);
  });
  read.flag("restart_usage_errors", options.restart_usage_errors);
  read.value("shutdown_timeout", options.shutdown_timeout, seconds);
  read.value("heartbeat_timeout", options.heartbeat_timeout, seconds);
  read.flag("virtual_local_rank", options.virtual_local_rank);
  read.flag("module", options.module);
  read.flag("no_python", options.no_python);
  options.pass_local_rank = dialect == Dialect::kTorchLaunch;
  if (is_on(given, "use_env")) {
    options.pass_local_rank = false;
  }
  if (options.module && options.no_python) {
    throw UsageError("launch.options",
                     "--module and --no_python contradict each other: a module needs Python");
  }
  return options;
}

std::string purpose_of(Dialect dialect) {
  const std::string all = "Start a program as several ranks on this node and watch over them";
  switch (dialect) {
    case Dialect::kTorchrun:
      return all +
             ", for a line that was written for torchrun: it says all, and no batch system (Slurm, "
             "PBS, …) is asked.";
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

/// "torchrun --nproc_per_node train.py": the program was taken as an option's value.
std::string swallowed(const std::vector<std::string>& args) {
  if (args.size() < 2 || !args[args.size() - 2].starts_with("--")) {
    return "";
  }
  return fmt::format("\"{}\" was taken as the value of {}. ", args.back(), args[args.size() - 2]);
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
    throw UsageError("launch.options",
                     fmt::format("no program given: expected {0} [options] program [arguments]. "
                                 "{1}See: argosy {0} --help",
                                 command_of(dialect),
                                 swallowed(args)));
  }
  return parsed;
}

}  // namespace argosy::launch
