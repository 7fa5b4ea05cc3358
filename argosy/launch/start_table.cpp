#include "argosy/launch/start_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/base/secrets.h"
#include "argosy/base/strings.h"
#include "argosy/os/addresses.h"
#include "argosy/os/subprocess.h"

namespace argosy::launch {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

std::string table(const Rows& rows) {
  size_t name = 0;
  size_t value = 0;
  for (const auto& [left, right] : rows) {
    name = std::max(name, strings::columns(left));
    value = std::max(value, strings::columns(right));
  }
  const std::string rule = fmt::format("[launch] +-{:-<{}}-+-{:-<{}}-+\n", "", name, "", value);
  std::string text = rule;
  for (const auto& [left, right] : rows) {
    text += fmt::format("[launch] | {:<{}} | {:<{}} |\n", left, name, right, value);
  }
  return text + rule;
}

std::string plural(int count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// The command as a shell would take it, near enough, shortened in the middle.
std::string shown(const std::vector<std::string>& command) {
  constexpr size_t kMost = 60;
  std::string text = fmt::format("{}", fmt::join(command, " "));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.size() <= kMost
             ? text
             : text.substr(0, kMost * 2 / 3) + " … " + text.substr(text.size() - kMost / 3);
}

/// "rank 3", "ranks 3 to 5"
std::string ranks_of(const JobDescription& job) {
  const int last = job.first_rank + job.ranks - 1;
  return job.ranks == 1 ? fmt::format("rank {}", last)
                        : fmt::format("ranks {} to {}", job.first_rank, last);
}

std::string value_of(const std::vector<std::string>& environment, const std::string& name) {
  for (const std::string& entry : environment) {
    if (entry.starts_with(name + "=")) {
      return entry.substr(name.size() + 1);
    }
  }
  return "";
}

/// What the other nodes have a say in, before they have met.
bool is_open(std::string_view name, const JobDescription& job) {
  constexpr auto kOpen = std::to_array<std::string_view>({"RANK",
                                                          "WORLD_SIZE",
                                                          "ROLE_RANK",
                                                          "ROLE_WORLD_SIZE",
                                                          "MASTER_ADDR",
                                                          "MASTER_PORT",
                                                          "PADDLE_MASTER",
                                                          "PADDLE_TRAINER_ID",
                                                          "PADDLE_GLOBAL_RANK",
                                                          "PADDLE_TRAINERS_NUM",
                                                          "PADDLE_GLOBAL_SIZE",
                                                          "PADDLE_TRAINER_ENDPOINTS",
                                                          "PADDLE_CURRENT_ENDPOINT",
                                                          "ARGOSY_RUN_ID",
                                                          "ARGOSY_LINE_PREFIX",
                                                          "ARGOSY_LOG_DIR",
                                                          "PADDLE_LOG_DIR",
                                                          "TORCHELASTIC_ERROR_FILE",
                                                          "TORCHELASTIC_RUN_ID"});
  const bool by_number = name == "GROUP_RANK" || name == "POD_NAME";
  return std::ranges::count(kOpen, name) > 0 || (by_number && job.node_rank < 0);
}

/// "NAME=value" as it may be shown.
std::string shown_variable(const std::string& entry, const JobDescription& job) {
  const std::string name = entry.substr(0, entry.find('='));
  return !job.settled && is_open(name, job) ? name + "=(settled when the nodes meet)"
                                            : secrets::hidden(entry);
}

/// Variables of rank 0 that are not as they were found, then what differs for each other rank.
std::string variables(const JobDescription& job) {
  const std::vector<std::string> inherited = os::environ_list();
  std::string text = job.ranks == 1
                         ? ""
                         : "[launch] environment of the first rank, then what differs for "
                           "each other rank:\n";
  std::set<std::string> common(inherited.begin(), inherited.end());
  for (int local = 0; local < job.ranks; ++local) {
    const int rank = job.first_rank + local;
    for (const std::string& entry : rank_environment(job, local, inherited)) {
      if (common.contains(entry)) {
        continue;
      }
      text += fmt::format("[launch] {} {}: {}\n",
                          job.settled ? "rank" : "local rank",
                          rank,
                          shown_variable(entry, job));
      if (local == 0) {
        common.insert(entry);
      }
    }
  }
  return text;
}

/// "SKYLAKEX (--env)", "1 (as found)", or what the launcher chose and why.
std::string cpu_value(const JobDescription& job,
                      const std::vector<std::string>& environment,
                      const std::string& name,
                      const std::string& why) {
  const std::string value = value_of(environment, name);
  if (value.empty()) {
    return "not set";
  }
  const bool by_option =
      std::ranges::any_of(job.extra, [&](const auto& each) { return each.first == name; });
  const bool found = !value_of(os::environ_list(), name).empty();
  return fmt::format("{} ({})", value, by_option ? "--env" : found ? "as found" : why);
}

/// "rank 0: 0-3; rank 1: 4-7"
std::string bound_cores(const JobDescription& job) {
  std::string text;
  for (size_t local = 0; local < job.cpus.size(); ++local) {
    text += fmt::format("{}rank {}: {}",
                        text.empty() ? "" : "; ",
                        job.first_rank + static_cast<int>(local),
                        strings::ranges(job.cpus[local]));
  }
  return text;
}

/// How the CPUs are set up, by whom, and so what overrides it: variables of these names, --env.
void add_cpu_rows(const JobDescription& job,
                  const std::vector<std::string>& environment,
                  Rows& rows) {
  const auto value = [&](const std::string& name, const std::string& why) {
    return cpu_value(job, environment, name, why);
  };
  const Share share = threads_of_a_rank(job);
  rows.emplace_back("OMP_NUM_THREADS",
                    value("OMP_NUM_THREADS",
                          share.bound ? "--bind: the cores of the rank that has the fewest"
                                      : fmt::format("{} {}, shared out among the ranks",
                                                    plural(share.cores, "core"),
                                                    share.by_queue ? "from the queue"
                                                                   : "usable of this machine")));
  rows.emplace_back("OMP_WAIT_POLICY", value("OMP_WAIT_POLICY", "teams of several threads"));
  const bool chosen = !job.cpu_capability.empty();
  if (chosen) {
    rows.emplace_back("kernels", job.cpu_capability + " (--cpu_capability)");
  }
  rows.emplace_back(
      "OPENBLAS_CORETYPE",
      value("OPENBLAS_CORETYPE",
            chosen                                                  ? "--cpu_capability"
            : !value_of(environment, "ATEN_CPU_CAPABILITY").empty() ? "ATEN_CPU_CAPABILITY"
                                                                    : "this CPU has AVX-512"));
  if (job.cpus.empty() && !job.bound_by_queue) {
    rows.emplace_back("cores", "not bound: see --bind");
  }
}

}  // namespace

std::string describe_start(const Job& job, StartDetail detail) {
  const JobDescription& what = job.description;
  const std::vector<std::string> environment = rank_environment(what, 0, os::environ_list());
  const int threads = std::atoi(value_of(environment, "OMP_NUM_THREADS").c_str());
  const std::string of_all = !what.settled     ? fmt::format(", one of {} nodes", what.nodes)
                             : what.nodes == 1 ? ""
                                               : fmt::format(" ({} of {}, node {} of {})",
                                                             ranks_of(what),
                                                             what.world_size,
                                                             what.node_rank,
                                                             what.nodes);
  Rows rows{{"ranks",
             fmt::format("{} on {}{}, {} each",
                         what.ranks,
                         os::host_name(),
                         of_all,
                         threads > 0 ? plural(threads, "thread") : "threads as they choose")},
            {"program", shown(secrets::hidden(job.program.args))}};
  if (what.servers) {
    const EndpointsByRole all = endpoints_by_role(what);
    rows.emplace_back("server_num", std::to_string(all.servers.size()));
    rows.emplace_back("servers", fmt::format("{}", fmt::join(all.servers, ",")));
    rows.emplace_back("worker_num", std::to_string(all.workers.size()));
    rows.emplace_back("workers", fmt::format("{}", fmt::join(all.workers, ",")));
  }
  if (what.node.gpus > 0) {
    rows.emplace_back("GPUs",
                      what.gpus.empty() ? plural(what.node.gpus, "visible one")
                                        : fmt::format("{}", fmt::join(what.gpus, ", ")));
  }
  if (!what.cpus.empty()) {
    const std::vector<int>& first = what.cpus.front();
    rows.emplace_back("cores", first.empty() ? "not bound: fewer than ranks" : bound_cores(what));
  }
  if (what.bound_by_queue) {
    rows.emplace_back("cores", "not bound: each of the queue's launchers here has its own");
  }
  if (detail == StartDetail::kEnvironment) {
    add_cpu_rows(what, environment, rows);
  }
  if (what.tls.on) {
    rows.emplace_back("TLS",
                      what.tls.from_files() ? "by " + what.tls.certificate_file
                                            : "by certificates made from ARGOSY_TOKEN");
  }
  if (what.settled) {
    rows.emplace_back("logs", job.logs.pattern());
  }
  if (what.settled || !what.job_id.empty()) {
    rows.emplace_back("job", what.job_id.empty() ? what.run_id : what.job_id);
  }
  if (what.settled) {
    rows.emplace_back("MASTER_PORT", os::host_port(what.master_host, what.master_port));
  } else {
    rows.emplace_back("meeting", what.store + ", where ranks, addresses and ports are settled");
  }
  return table(rows) + (detail == StartDetail::kEnvironment ? variables(what) : "");
}

}  // namespace argosy::launch
