#include "argosy/launch/job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "argosy/base/catalogue.h"
#include "argosy/base/deadline.h"
#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/base/text.h"
#include "argosy/os/addresses.h"
#include "argosy/os/random.h"
#include "argosy/os/topology.h"
#include "argosy/rendezvous/job_token.h"

namespace argosy::launch {
namespace {

namespace fs = std::filesystem;

/// "20261120-053000-1f3c9a07": sorts by time, and all launches of an array of jobs differ.
std::string make_run_id() {
  return text::stamp(std::chrono::system_clock::now()) + "-" + os::random_hex(4);
}

/// A port that was asked for may be a former job's, which is about to end.
os::HeldPort hold_wanted(uint16_t wanted, const std::function<void()>& look_up) {
  constexpr std::chrono::seconds kPatience{5};
  constexpr std::chrono::milliseconds kPause{50};
  const Deadline deadline = Deadline::after(kPatience);
  bool told = false;
  while (true) {
    Result<os::HeldPort> held = os::HeldPort::hold(wanted);
    if (held.ok()) {
      return *std::move(held);
    }
    if (held.failure().error_number != EADDRINUSE || deadline.expired()) {
      throw Error(  // no wrong usage: it may be free another time
          "launch.ports",
          fmt::format("--master_port {}: {}. Give another one, or none: then a free one "
                      "is taken. ss -ltnp shows who has it.",
                      wanted,
                      held.failure().what));
    }
    if (!std::exchange(told, true)) {
      fmt::print(stderr,
                 "[launch] --master_port {} is in use; trying again for {} s\n",
                 wanted,
                 kPatience.count());
    }
    look_up();
    std::this_thread::sleep_for(kPause);
  }
}

uint16_t hold_port(Job& job) {
  job.held_ports.push_back(os::HeldPort::hold().or_throw<Error>("launch.ports"));
  return job.held_ports.back().number();
}

uint16_t hold_master_port(Job& job,
                          const LaunchOptions& options,
                          const std::function<void()>& look_up) {
  if (options.master_port == 0) {
    return hold_port(job);
  }
  if (!options.dry_run) {
    job.held_ports.push_back(hold_wanted(options.master_port, look_up));
  }
  return options.master_port;
}

int count_ranks(const LaunchOptions& options, const Node& node) {
  if (!options.nproc_per_node.empty()) {
    return processes_per_node(options.nproc_per_node, node);
  }
  if (!options.gpus.empty()) {
    return static_cast<int>(options.gpus.size());
  }
  return options.rank_per_gpu ? std::max(1, node.gpus) : 1;
}

/// --cpu_capability, of this machine.
void check_capability(const JobDescription& what) {
  const bool has = what.cpu_capability == "avx512" ? what.node.avx512
                   : what.cpu_capability == "avx2" ? what.node.avx2
                                                   : true;
  if (!has) {
    throw UsageError("launch.options",
                     fmt::format("--cpu_capability {0}: this machine's processor has no {0}. Give "
                                 "all machines what each of them has: {1}",
                                 what.cpu_capability,
                                 what.node.avx2 ? "avx2" : "default"));
  }
}

/// --virtual_local_rank: the ranks of this node against the GPUs that are listed for it.
void check_one_gpu_each(const JobDescription& what) {
  const std::optional<std::string>& list = what.node.found.list;
  const size_t listed = !what.gpus.empty()       ? what.gpus.size()
                        : list && !list->empty() ? strings::split(*list, ',').size()
                                                 : 0;
  const std::string variable = what.node.found.variable();
  const auto said =
      std::ranges::find(what.extra, variable, [](const auto& entry) { return entry.first; });
  if (said != what.extra.end()) {
    throw UsageError("launch.options",
                     fmt::format("--virtual_local_rank sets {} for each rank, --env for all: give "
                                 "the GPUs by --gpus, or in this launcher's own environment",
                                 variable));
  }
  if (listed > 0 && listed < static_cast<size_t>(what.ranks)) {
    throw UsageError("launch.options",
                     fmt::format("--virtual_local_rank gives each rank a GPU of its own: {} ranks, "
                                 "but {} GPUs are listed (--gpus, {})",
                                 what.ranks,
                                 listed,
                                 what.node.found.list_from));
  }
}

/// The processors of each rank: those next to its GPU, where it has one and the kernel tells them.
std::vector<std::vector<int>> cpus_of_ranks(const JobDescription& what,
                                            const std::vector<os::CpuPlace>& places,
                                            os::CpuBinding binding) {
  std::vector<std::vector<int>> near;
  for (size_t rank = 0; rank < static_cast<size_t>(what.ranks); ++rank) {
    const std::vector<os::Gpu>& gpus =
        what.gpus.empty() ? what.node.found.visible : what.node.found.all;
    const size_t number = what.gpus.empty()         ? rank
                          : rank < what.gpus.size() ? static_cast<size_t>(what.gpus[rank])
                                                    : gpus.size();
    near.push_back(number < gpus.size() ? gpus[number].cpus : std::vector<int>());
  }
  const std::vector<std::vector<int>> shares = os::share_out_near(places, near, binding);
  return shares.front().empty() ? os::share_out(places, what.ranks, binding) : shares;
}

/// The folder of this run's files.
std::string run_folder(const LaunchOptions& options, const JobDescription& job) {
  switch (options.layout) {
    case LogLayout::kPaddle:
      return options.log_dir;
    case LogLayout::kTorchrun:
      return fs::path(options.log_dir) /
             (job.job_id.empty() ? job.run_id : job.job_id + "_" + job.run_id);
    default:
      return fs::path(options.log_dir) / job.run_id;
  }
}

}  // namespace

namespace {

/// Why no folder can be made there; nullopt: one can.
std::optional<std::string> why_not_written(const fs::path& folder) {
  std::error_code error;
  fs::path there = fs::absolute(folder, error);
  while (!fs::exists(there, error) && there.has_relative_path()) {
    there = there.parent_path();
  }
  return ::access(there.c_str(), W_OK | X_OK) == 0
             ? std::nullopt
             : std::optional(fmt::format("{}: {}", there.string(), errno_message(errno)));
}

}  // namespace

void settle_logs(const LaunchOptions& options, Job& job) {
  if (const auto why = options.log_dir_given ? std::nullopt : why_not_written(options.log_dir)) {
    fmt::print(stderr,
               "[launch] cannot write log files: {}. See --log_dir, and {}\n",
               *why,
               catalogue_section("launch.log_dir"));
    job.logs = {};
    job.description.log_dir.clear();
    return;
  }
  job.logs = {.layout = options.layout,
              .folder = run_folder(options, job.description),
              .overwrite = options.log_overwrite,
              .servers = options.servers.value_or(0),
              .redirects = options.redirects,
              .tee = options.tee,
              .out_filters = options.out_filters,
              .err_filters = options.err_filters};
  std::error_code error;
  if (options.log_dir_given && !options.dry_run) {
    const bool name_may_change = options.nodes.nodes > 1 && job.description.nodes == 1;
    fs::create_directories(name_may_change ? options.log_dir : job.logs.folder, error);
  }
  if (error) {
    throw ConfigError("launch.log_dir",
                      fmt::format("cannot make the folder {}: {}. Choose another --log_dir.",
                                  job.logs.folder,
                                  error.message()));
  }
  job.description.log_dir = fs::absolute(job.logs.folder).lexically_normal().string();
}

Job prepare_job(const LaunchOptions& options,
                const Node& node,
                const std::function<void()>& look_up) {
  Job job;
  JobDescription& what = job.description;
  what.node = node;
  what.gpus = options.gpus;
  if (!options.gpus.empty()) {
    const std::string warning = check_gpus(options.gpus, node.found);
    if (!warning.empty()) {
      fmt::print(stderr, "[launch] {}\n", warning);
    }
    what.node.gpus = static_cast<int>(options.gpus.size());
  }
  what.ranks = count_ranks(options, what.node);
  what.cores = options.threads;
  const int local_ranks = options.local_tasks > 1 ? options.local_tasks : what.ranks;
  for (const int shown : options.local_ranks_filter) {
    if (shown >= local_ranks) {
      throw UsageError(
          "launch.options",
          fmt::format("--local_ranks_filter: there is no local rank {}: they are 0 to {}",
                      shown,
                      local_ranks - 1));
    }
  }
  if (options.local_tasks > 1) {
    what.local_offset = options.local_task;
    what.local_size = options.local_tasks;
  }
  what.role = options.role;
  what.servers = options.servers;
  what.job_id = options.job_id;
  what.max_restarts = options.max_restarts;
  what.extra = options.env;
  what.virtual_local_rank = options.virtual_local_rank;
  if (options.virtual_local_rank) {
    check_one_gpu_each(what);
  }
  what.cpu_capability = options.cpu_capability;
  check_capability(what);
  what.interface = options.nodes.interface;
  what.prefix_has_rank = options.line_prefix.find("${rank}") != std::string::npos;
  what.run_id = make_run_id();
  what.token = rendezvous::job_token(env::get);
  what.tls = options.tls;
  if (what.token.empty()) {
    what.token = os::random_hex(16);
  }
  what.master_port = hold_master_port(job, options, look_up);
  what.world_size = what.ranks;
  // Of several launchers on a node each has the cores that its queue gave it.
  what.bound_by_queue = options.cpu_bind != os::CpuBinding::kNone && options.local_tasks > 1;
  if (options.cpu_bind != os::CpuBinding::kNone && !what.bound_by_queue) {
    const std::vector<os::CpuPlace> places = os::cpu_places(os::affinity_cpus());
    what.cpus = cpus_of_ranks(what, places, options.cpu_bind);
    what.bound_cores = what.cpus.front().empty() ? 0 : os::fewest_cores(places, what.cpus);
  }
  for (int rank = 0; rank < what.ranks; ++rank) {
    job.endpoint_ports.push_back(hold_port(job));
    what.endpoints.push_back(os::host_port(what.host, job.endpoint_ports.back()));
  }
  if (!options.log_dir.empty()) {
    settle_logs(options, job);
  }
  return job;
}

void take_place(Job& job, const JobPlan& plan, int node, const std::string& store) {
  const JobPlan::Node& here = plan.nodes.at(static_cast<size_t>(node));
  JobDescription& what = job.description;
  what.run_id = plan.run_id;
  what.first_rank = here.first_rank;
  what.world_size = plan.world_size();
  what.ranks_of_nodes.clear();
  what.servers_of_nodes.clear();
  for (const JobPlan::Node& node_of_job : plan.nodes) {
    what.ranks_of_nodes.push_back(node_of_job.ranks);
    what.servers_of_nodes.push_back(node_of_job.servers);
  }
  what.node_rank = node;
  what.nodes = static_cast<int>(plan.nodes.size());
  what.host = here.address;
  what.master_host = plan.master_host;
  what.master_port = plan.master_port;
  what.endpoints = plan.endpoints;
  what.store = store;
}

}  // namespace argosy::launch
