#include "argosy/launch/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "argosy/base/catalogue.h"
#include "argosy/base/strings.h"
#include "argosy/os/addresses.h"

namespace argosy::launch {
namespace {

class Variables {
 public:
  explicit Variables(const std::vector<std::string>& inherited) {
    for (const std::string& entry : inherited) {
      const size_t equals = entry.find('=');
      if (equals != std::string::npos) {
        // The first of duplicates counts, as for getenv.
        values_.emplace(entry.substr(0, equals), entry.substr(equals + 1));
      }
    }
  }
  template <typename T>
  void set(const std::string& name, const T& value) {
    values_[name] = fmt::format("{}", value);
  }
  template <typename T>
  void set_default(const std::string& name, const T& value) {
    if (!given(name)) {
      set(name, value);
    }
  }
  [[nodiscard]] bool given(const std::string& name) const {
    const auto there = values_.find(name);
    return there != values_.end() && !there->second.empty();
  }
  /// Set, and to nothing: as CUDA_VISIBLE_DEVICES it hides all of NVIDIA's GPUs.
  [[nodiscard]] bool hidden(const std::string& name) const {
    return values_.contains(name) && !given(name);
  }
  [[nodiscard]] std::string value(const std::string& name) const {
    return given(name) ? values_.at(name) : "";
  }
  void remove(const std::string& name) { values_.erase(name); }
  [[nodiscard]] std::vector<std::string> list() const {
    std::vector<std::string> entries;
    entries.reserve(values_.size());
    for (const auto& [name, value] : values_) {
      entries.push_back(name + "=" + value);
    }
    return entries;
  }

 private:
  std::map<std::string, std::string> values_;
};

void set_torchruns(Variables& env, const JobDescription& job, int local_rank) {
  const RoleOfRank role = role_of(job, local_rank);
  env.set("RANK", role.index);
  env.set("LOCAL_RANK", role.local_index);
  env.set("WORLD_SIZE", role.count);
  env.set("LOCAL_WORLD_SIZE", role.local_count);
  env.set("GROUP_RANK", job.node_rank);
  env.set("GROUP_WORLD_SIZE", job.nodes);
  env.set("ROLE_RANK", role.index);
  env.set("ROLE_WORLD_SIZE", role.count);
  env.set("ROLE_NAME", role.name);
  env.set("MASTER_ADDR", job.master_host);
  env.set("MASTER_PORT", job.master_port);
  env.set("TORCHELASTIC_RESTART_COUNT", job.restart);
  env.set("TORCHELASTIC_MAX_RESTARTS", job.max_restarts);
  env.set("TORCHELASTIC_RUN_ID", job.job_id.empty() ? job.run_id : job.job_id);
  env.set_default("TORCH_NCCL_ASYNC_ERROR_HANDLING", 1);
  // Nobody listens at MASTER_PORT: rank 0 makes its store there, as without torchrun.
  env.set("TORCHELASTIC_USE_AGENT_STORE", "False");
}

/// The number of the rank's own GPU.
constexpr std::array kPaddlesDevices{
    "FLAGS_selected_gpus", "FLAGS_selected_accelerators", "PADDLE_LOCAL_DEVICE_IDS"};

void set_paddles(Variables& env, const JobDescription& job, int local_rank) {
  const int rank = job.first_rank + local_rank;
  env.set("PADDLE_MASTER", os::host_port(job.master_host, job.master_port));
  env.set("PADDLE_TRAINER_ID", rank);
  env.set("PADDLE_GLOBAL_RANK", rank);
  env.set("PADDLE_LOCAL_RANK", job.local_offset + local_rank);
  env.set("PADDLE_RANK_IN_NODE", job.local_offset + local_rank);
  env.set("PADDLE_TRAINERS_NUM", job.world_size);
  env.set("PADDLE_GLOBAL_SIZE", job.world_size);
  env.set("PADDLE_LOCAL_SIZE", local_world_size(job));
  env.set("PADDLE_NNODES", job.nodes);
  env.set("PADDLE_TRAINER_ENDPOINTS", fmt::format("{}", fmt::join(job.endpoints, ",")));
  env.set("PADDLE_CURRENT_ENDPOINT", job.endpoints.at(static_cast<size_t>(rank)));
  // What paddle.distributed.rpc reads: --run_mode rpc of its launcher.
  env.set("PADDLE_MASTER_ENDPOINT", os::host_port(job.master_host, job.master_port));
  env.set("PADDLE_WORKER_ENDPOINT", job.endpoints.at(static_cast<size_t>(rank)));
  env.set_default("POD_NAME", fmt::format("{}-{}", job.run_id, job.node_rank));
  env.remove("PADDLE_BACKUP_ENV_PATH");  // for endpoints that are withheld: ours never are
  if (job.log_dir.empty()) {
    env.remove("PADDLE_LOG_DIR");
  } else {
    env.set("PADDLE_LOG_DIR", job.log_dir);
  }
}

/// Paddle's variables of a job with servers, where they differ from those of one without.
void set_paddles_servers(Variables& env, const JobDescription& job, int local_rank) {
  const RoleOfRank role = role_of(job, local_rank);
  const EndpointsByRole all = endpoints_by_role(job);
  const int rank = job.first_rank + local_rank;
  const std::string& own = job.endpoints.at(static_cast<size_t>(rank));
  const size_t colon = own.rfind(':');
  const bool serves = role.name == "server";
  env.set("PADDLE_PSERVERS_IP_PORT_LIST", fmt::format("{}", fmt::join(all.servers, ",")));
  env.set("PADDLE_TRAINER_ENDPOINTS", fmt::format("{}", fmt::join(all.workers, ",")));
  env.set("PADDLE_TRAINERS_NUM", static_cast<int>(all.workers.size()));
  env.set("TRAINING_ROLE", serves ? "PSERVER" : "TRAINER");
  env.set("PADDLE_ROLE", serves ? "PSERVER" : "TRAINER");
  env.set("POD_IP", own.substr(0, colon));
  env.set("PADDLE_PORT", own.substr(colon + 1));
  env.set("PADDLE_WITH_GLOO", 0);
  env.set("PADDLE_LOCAL_RANK", role.local_index);
  env.set("PADDLE_RANK_IN_NODE", role.local_index);
  env.set("PADDLE_LOCAL_SIZE", role.local_count);
  for (const char* name : {"PADDLE_GLOBAL_RANK", "PADDLE_GLOBAL_SIZE", "PADDLE_CURRENT_ENDPOINT"}) {
    env.remove(name);  // which count all ranks
  }
  if (serves) {
    env.remove("PADDLE_TRAINER_ID");
  } else {
    env.set("PADDLE_TRAINER_ID", role.index);
  }
}

/// The numbers of all ranks' GPUs, by rank: "0,1,0,1" on two nodes. Each takes that of its number
/// on its node.
std::string devices_of_world(const JobDescription& job) {
  std::vector<int> devices;
  for (const int ranks : job.ranks_of_nodes.empty() ? std::vector{job.ranks} : job.ranks_of_nodes) {
    for (int rank = 0; rank < ranks; ++rank) {
      devices.push_back(rank);
    }
  }
  return fmt::format("{}", fmt::join(devices, ","));
}

/// Paddle's variables of devices, with numbers among those that the rank sees.
void set_paddles_devices(Variables& env, const JobDescription& job, int local_rank) {
  for (const char* name : kPaddlesDevices) {
    env.remove(name);
  }
  env.remove("PADDLE_WORLD_DEVICE_IDS");
  if (job.node.gpus < local_world_size(job)) {
    env.set("PADDLE_DISTRI_BACKEND", "gloo");
    return;
  }
  env.remove("PADDLE_DISTRI_BACKEND");
  for (const char* name : kPaddlesDevices) {
    env.set(name, job.local_offset + local_rank);
  }
  if (job.local_size == 0 || job.local_size == job.ranks) {  // one launcher has all of a node
    env.set("PADDLE_WORLD_DEVICE_IDS", devices_of_world(job));
  }
}

void set_ours(Variables& env, const JobDescription& job, int local_rank) {
  const int rank = job.first_rank + local_rank;
  if (job.store.empty()) {
    env.remove("ARGOSY_STORE");
  } else {
    env.set("ARGOSY_STORE", job.store);
  }
  env.set("ARGOSY_TOKEN", job.token);
  if (job.tls.on || env.given("ARGOSY_TLS") || env.given("ARGOSY_TLS_CERT")) {
    for (const auto& [name, value] : rendezvous::tls_variables(job.tls)) {
      env.set(name, value);
    }
  }
  env.set("ARGOSY_RUN_ID", start_id(job));
  env.set("ARGOSY_RESTART_COUNT", job.restart);
  if (!docs_folder().empty()) {
    env.set("ARGOSY_DOCS", docs_folder());
  }
  if (job.servers) {
    env.set("ARGOSY_RANK", rank);  // RANK is that among the servers or the workers
  } else {
    env.remove("ARGOSY_RANK");
  }
  if (job.log_dir.empty()) {
    env.remove("ARGOSY_LOG_DIR");
  } else {
    env.set("ARGOSY_LOG_DIR", job.log_dir);
  }
  if (job.prefix_has_rank) {
    env.set(
        "ARGOSY_LINE_PREFIX",  // see Rank; the log omits it
        !job.servers
            ? fmt::format("rank {}", rank)
            : fmt::format("{} {}", role_of(job, local_rank).name, role_of(job, local_rank).index));
  } else {
    env.remove("ARGOSY_LINE_PREFIX");
  }
  // One rank only may redraw a line: two would overwrite each other's.
  const bool bar =
      job.bar && local_rank == job.servers.value_or(0) && role_of(job, local_rank).index == 0;
  env.set_default("ARGOSY_PROGRESS", bar ? "tty" : "plain");
  if (bar && job.columns > 0) {
    env.set_default("COLUMNS", job.columns);
  }
}

/// --env
void set_given(Variables& env, const JobDescription& job) {
  for (const auto& [name, value] : job.extra) {
    env.set(name, value);
  }
}

/// A team that fills the machine is never alone on it: loader and communication threads, other
/// ranks. Spinning at the end of each operator then holds up the very thread that is waited for.
void set_threads(Variables& env, int threads) {
  if (env.given("OMP_NUM_THREADS")) {
    return;
  }
  env.set("OMP_NUM_THREADS", threads);
  env.set("ARGOSY_OMP_NUM_THREADS", threads);  // not the user's choice
  if (threads > 1 && !env.given("GOMP_SPINCOUNT")) {
    env.set_default("OMP_WAIT_POLICY", "passive");
  }
}

/// One instruction set in the words of libtorch, oneDNN and OpenBLAS.
struct Kernels {
  std::string_view aten;
  const char* onednn;
  const char* openblas;
  const char* mkl;
};
constexpr std::array kKernels = {Kernels{"default", "SSE41", "NEHALEM", "COMPATIBLE"},
                                 Kernels{"avx2", "AVX2", "HASWELL", "AVX2"},
                                 Kernels{"avx512", "AVX512_CORE", "SKYLAKEX", "AVX512"}};

/// What rounds must not depend on the machine where the user says so.
void set_kernels(Variables& env, const JobDescription& job) {
  if (!job.cpu_capability.empty()) {
    env.set("ATEN_CPU_CAPABILITY", job.cpu_capability);
  }
  const std::string wanted = strings::to_lower(env.value("ATEN_CPU_CAPABILITY"));
  const auto* const known = std::ranges::find(kKernels, wanted, &Kernels::aten);
  if (known != kKernels.end()) {
    for (const auto& [name, value] : {std::pair("DNNL_MAX_CPU_ISA", known->onednn),
                                      {"ONEDNN_MAX_CPU_ISA", known->onednn},
                                      {"OPENBLAS_CORETYPE", known->openblas},
                                      {"MKL_CBWR", known->mkl}}) {
      if (job.cpu_capability.empty()) {
        env.set_default(name, value);
      } else {
        env.set(name, value);  // whatever a launcher around this one has chosen
      }
    }
  } else if (job.node.avx512) {
    env.set_default("OPENBLAS_CORETYPE", "SKYLAKEX");
  }
}

/// ARGOSY_MALLOC=huge: what glibc takes from its environment only. See engine::setup_cpu().
void set_memory(Variables& env) {
  if (strings::to_lower(env.value("ARGOSY_MALLOC")) == "huge") {
    env.set_default("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
  }
}

constexpr const char* kVisibleDevices = "CUDA_VISIBLE_DEVICES";

/// Which GPUs the rank sees. AMD's runtime prefers its own variable, and other tools read the first
/// on its machines too.
void set_visible(Variables& env, const JobDescription& job, const std::string& list) {
  env.set(kVisibleDevices, list);
  env.set(job.node.found.variable(), list);
}

/// The one GPU that the rank would have chosen by its number is all that it sees: by that on the
/// node, or among this launcher's, where the queue gave each of a node's launchers GPUs of its own.
void set_virtual_local_rank(Variables& env, const JobDescription& job, int local_rank) {
  const char* const own = job.node.found.variable();
  const char* const list = env.given(own) ? own : kVisibleDevices;
  const std::vector<std::string> visible = strings::split(env.value(list), ',');
  const bool all_of_node =
      !env.given(list) || visible.size() >= static_cast<size_t>(local_world_size(job));
  const int number = all_of_node ? job.local_offset + local_rank : local_rank;
  const auto index = static_cast<size_t>(number);
  const bool listed = index < visible.size() && !visible[index].empty();
  if (job.node.found.driver == os::GpuDriver::kAmd || !env.hidden(list)) {
    set_visible(
        env, job, listed ? std::string(strings::trim(visible[index])) : std::to_string(number));
  }
  for (const char* name : {"LOCAL_RANK", "PADDLE_LOCAL_RANK", "PADDLE_RANK_IN_NODE"}) {
    env.set(name, 0);
  }
  for (const char* name : kPaddlesDevices) {
    if (env.given(name)) {
      env.set(name, 0);
    }
  }
  env.remove("PADDLE_WORLD_DEVICE_IDS");
}

}  // namespace

Share threads_of_a_rank(const JobDescription& job) {
  // What the queue says may be what it told another task; the process's own cores are a fact.
  const bool by_queue = job.cores > 0;
  const int cores = by_queue ? std::min(job.cores, job.node.cores) : job.node.cores;
  const int ranks = by_queue ? job.ranks : local_world_size(job);
  const int threads = std::max(1, cores / ranks);
  const bool bound = job.bound_cores > 0 && job.bound_cores < threads;
  return {.threads = bound ? job.bound_cores : threads,
          .cores = cores,
          .by_queue = by_queue,
          .bound = bound};
}

namespace {

struct NodeRanks {
  int servers;
  int ranks;
};

/// Of each node of a job with servers.
std::vector<NodeRanks> nodes_of(const JobDescription& job) {
  std::vector<NodeRanks> nodes;
  for (size_t i = 0; i < job.ranks_of_nodes.size(); ++i) {
    nodes.push_back({job.servers_of_nodes.at(i), job.ranks_of_nodes[i]});
  }
  return nodes.empty() ? std::vector<NodeRanks>{{job.servers.value_or(0), job.ranks}} : nodes;
}

}  // namespace

RoleOfRank role_of(const JobDescription& job, int local_rank) {
  if (!job.servers) {
    return {.name = job.role,
            .index = job.first_rank + local_rank,
            .count = job.world_size,
            .local_index = job.local_offset + local_rank,
            .local_count = local_world_size(job)};
  }
  const bool serves = local_rank < *job.servers;
  const int local_index = serves ? local_rank : local_rank - *job.servers;
  RoleOfRank role{.name = serves ? "server" : "worker",
                  .index = local_index,
                  .count = 0,
                  .local_index = local_index};
  const std::vector<NodeRanks> nodes = nodes_of(job);
  for (size_t node = 0; node < nodes.size(); ++node) {
    const int there = serves ? nodes[node].servers : nodes[node].ranks - nodes[node].servers;
    role.count += there;
    const auto place = static_cast<int>(node) - (nodes.size() > 1 ? job.node_rank : 0);
    role.index += place < 0 ? there : 0;
    role.local_count = place == 0 ? there : role.local_count;
  }
  return role;
}

EndpointsByRole endpoints_by_role(const JobDescription& job) {
  EndpointsByRole all;
  auto next = job.endpoints.begin();
  for (const NodeRanks& node : nodes_of(job)) {
    all.servers.insert(all.servers.end(), next, next + node.servers);
    all.workers.insert(all.workers.end(), next + node.servers, next + node.ranks);
    next += node.ranks;
  }
  return all;
}

std::string start_id(const JobDescription& job) {
  return job.restart == 0 ? job.run_id : fmt::format("{}.restart{}", job.run_id, job.restart);
}

std::string line_prefix(std::string pattern, const JobDescription& job, int local_rank) {
  const RoleOfRank role = role_of(job, local_rank);
  const std::array<std::pair<std::string_view, std::string>, 3> values{
      {{"${rank}", std::to_string(role.index)},
       {"${local_rank}", std::to_string(job.local_offset + local_rank)},
       {"${role_name}", role.name}}};
  for (const auto& [name, value] : values) {
    for (size_t at = 0; (at = pattern.find(name, at)) != std::string::npos; at += value.size()) {
      pattern.replace(at, name.size(), value);
    }
  }
  return pattern;
}

std::vector<std::string> rank_environment(const JobDescription& job,
                                          int local_rank,
                                          const std::vector<std::string>& inherited,
                                          const std::string& error_file) {
  Variables env(inherited);
  set_torchruns(env, job, local_rank);
  set_paddles(env, job, local_rank);
  if (job.servers) {
    set_paddles_servers(env, job, local_rank);
  }
  set_paddles_devices(env, job, local_rank);
  set_ours(env, job, local_rank);
  set_given(env, job);  // what is decided here gives way to it
  set_threads(env, threads_of_a_rank(job).threads);
  set_kernels(env, job);
  set_memory(env);
  if (!job.gpus.empty()) {
    set_visible(env, job, fmt::format("{}", fmt::join(job.gpus, ",")));
  }
  if (job.virtual_local_rank) {
    set_virtual_local_rank(env, job, local_rank);
  }
  if (!job.interface.empty()) {
    for (const char* name : {"ARGOSY_IFNAME", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}) {
      env.set_default(name, job.interface);
    }
  }
  if (error_file.empty()) {
    env.remove("TORCHELASTIC_ERROR_FILE");  // another launcher's, around this one
  } else {
    env.set("TORCHELASTIC_ERROR_FILE", error_file);
  }
  set_given(env, job);
  return env.list();
}

std::vector<std::string> kernel_environment(bool avx512,
                                            const std::vector<std::string>& inherited) {
  Variables env(inherited);
  set_kernels(env, {.node = {.avx512 = avx512}});
  std::vector<std::string> chosen = env.list();
  std::erase_if(chosen, [&](const std::string& entry) {
    return std::ranges::find(inherited, entry) != inherited.end();
  });
  return chosen;
}

}  // namespace argosy::launch
