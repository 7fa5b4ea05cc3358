#include "argosy/launch/start_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <utility>
#include <vector>

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

/// Variables of rank 0 that are not as they were found, then what differs for each other rank.
std::string variables(const JobDescription& job) {
  const std::vector<std::string> inherited = os::environ_list();
  std::string text = job.ranks == 1
                         ? ""
                         : "[launch] set for the first rank; for the others what differs "
                           "from it:\n";
  std::set<std::string> common(inherited.begin(), inherited.end());
  for (int local = 0; local < job.ranks; ++local) {
    const int rank = job.first_rank + local;
    for (const std::string& entry : rank_environment(job, local, inherited)) {
      if (common.contains(entry)) {
        continue;
      }
      const bool secret = entry.starts_with("ARGOSY_TOKEN=");
      text += fmt::format("[launch] rank {}: {}\n", rank, secret ? "ARGOSY_TOKEN=(hidden)" : entry);
      if (local == 0) {
        common.insert(entry);
      }
    }
  }
  return text;
}

}  // namespace

std::string describe_start(const Job& job, bool everything) {
  const JobDescription& what = job.description;
  const std::vector<std::string> environment = rank_environment(what, 0, os::environ_list());
  const int threads = std::atoi(value_of(environment, "OMP_NUM_THREADS").c_str());
  const std::string of_all = what.nodes == 1 ? ""
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
            {"program", shown(job.program.args)}};
  if (what.node.gpus > 0) {
    rows.emplace_back("GPUs",
                      what.gpus.empty() ? plural(what.node.gpus, "visible one")
                                        : fmt::format("{}", fmt::join(what.gpus, ", ")));
  }
  if (!what.cpus.empty()) {
    const std::vector<int>& first = what.cpus.front();
    rows.emplace_back("cores",
                      first.empty() ? "not bound: fewer than ranks"
                                    : fmt::format("each rank bound, rank {} to {}",
                                                  what.first_rank,
                                                  strings::ranges(first)));
  }
  if (what.tls.on) {
    rows.emplace_back("TLS",
                      what.tls.from_files() ? "by " + what.tls.certificate_file
                                            : "by certificates made from ARGOSY_TOKEN");
  }
  rows.emplace_back("logs", job.logs.pattern());
  rows.emplace_back("job", what.job_id.empty() ? what.run_id : what.job_id);
  rows.emplace_back("MASTER_PORT", os::host_port(what.master_host, what.master_port));
  return table(rows) + (everything ? variables(what) : "");
}

}  // namespace argosy::launch
