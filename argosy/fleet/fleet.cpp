#include "argosy/fleet/fleet.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/env.h"
#include "argosy/base/even_part.h"
#include "argosy/base/log.h"
#include "argosy/base/text.h"
#include "argosy/checkpoint/together.h"
#include "argosy/comm/collectives.h"
#include "argosy/comm/json.h"
#include "argosy/engine/cpu.h"
#include "argosy/engine/device.h"
#include "argosy/engine/parts.h"
#include "argosy/fleet/gradient_merge.h"
#include "argosy/fleet/large_batch.h"
#include "argosy/fleet/save_traffic.h"
#include "argosy/fleet/served_job.h"
#include "argosy/os/crash_handler.h"
#include "argosy/parallel/any_rank.h"
#include "argosy/parallel/recompute_blocks.h"
#include "argosy/rendezvous/environment.h"

#include <nlohmann/json.hpp>

namespace argosy::fleet {
namespace {

/// Bytes of parameters from which on dividing a step saves more than its two meetings cost:
/// MnistCnn (0.1 MB) takes 2 % longer divided, a model of 47 MB and little arithmetic 19 % less.
constexpr size_t kWorthDividing = size_t{1} << 20U;

/// What the process knows of its job. Destroyed at exit, which leaves the job in good order.
struct Job {
  comm::Group group;
  parallel::Mesh mesh;
  DistributedStrategy strategy;
  int local_rank = 0;
  c10::Device device = c10::kCPU;
  bool told_of_cpu = false;                      // that a model was left there; or asked for it
  std::shared_ptr<const comm::LeafDeal> leaves;  // of the virtual ranks
  /// Identities of the parameters that went through distributed_model(); they live as long as the
  /// models, and a stale entry can only make the check in distributed_optimizer() more lenient.
  std::unordered_map<const void*, std::weak_ptr<parallel::ddp::Core>> distributed;
  std::vector<std::weak_ptr<optim::OptimizerImpl>> prepared;  // by distributed_optimizer()
  std::string run_dir;
  bool told_of_kernels = false;
  bool deals_samples = false;     // which a training does, or an evaluation
  bool in_passes = false;         // of an update of fleet::updates()
  uint64_t versions_in_pass = 0;  // of the parameters, where there is only one virtual rank
};

std::optional<Job>& slot() {
  static std::optional<Job> job;
  return job;
}

Job& job(const char* function) {
  ARGOSY_CHECK(detail::served_job() == nullptr,
               fmt::format("fleet.{}", function),
               "a job with servers has no group of collectives");
  ARGOSY_CHECK(slot().has_value(),
               fmt::format("fleet.{}", function),
               "the job is not joined: call fleet::init() first");
  return *slot();
}

/// The job of a program that deals samples among the ranks.
Job& dealing_job(const char* function) {
  Job& state = job(function);
  state.deals_samples = true;
  return state;
}

parallel::Mesh make_mesh(const DistributedStrategy& strategy, const comm::Group& group) {
  parallel::Mesh mesh;
  try {
    mesh = parallel::Mesh(group, mesh_axes(strategy));
  } catch (const UsageError& error) {
    throw ConfigError("fleet.init", std::string("hybrid_configs: ") + error.what());
  }
  if (strategy.shards() && group.rank() == 0) {
    log::info("[fleet.init] the job's ranks by axis:\n{}", mesh.describe());
  }
  return mesh;
}

void check_virtual_ranks(int64_t wanted, const DistributedStrategy& strategy, int processes) {
  if (wanted > 0 && wanted != processes && strategy.sync_batch_norm) {
    throw ConfigError("fleet.init",
                      fmt::format("sync_batch_norm needs as many processes as virtual ranks ({}), "
                                  "here are {}: its ranks compute side by side. Start {}, or give "
                                  "virtual_ranks = {}, which is another recipe",
                                  wanted,
                                  processes,
                                  wanted,
                                  processes));
  }
}

/// Ranks that were given different numbers would deal the samples differently. And unlike machines
/// come to a result that depends on who computed what, which is told if `tells`. `wanted`: 0: one
/// for each process.
void agree_on_virtual_ranks(int64_t wanted, bool tells, const comm::Group& group) {
  const std::string kernels = tells ? engine::kernels_in_use() : "";
  const auto all = comm::all_gather_object(nlohmann::json{wanted, kernels}, group);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank][0] != all[0][0]) {
      throw ConfigError("fleet.init",
                        fmt::format("rank {} has virtual_ranks {}, rank 0 has {}. Give all ranks "
                                    "the same number.",
                                    rank,
                                    all[rank][0].get<int64_t>(),
                                    all[0][0].get<int64_t>()));
    }
  }
  const auto other = std::ranges::find_if(all, [&](const auto& each) { return each != all[0]; });
  if (other != all.end() && group.rank() == 0) {
    log::warn(
        "[fleet.init] rank {} computes operators by {}, rank 0 by {}: with virtual ranks the "
        "result depends on which of them computes what. Give all ranks the same OMP_NUM_THREADS, "
        "and "
        "unlike machines argosy launch --cpu_capability",
        other - all.begin(),
        (*other)[1].get<std::string>(),
        all[0][1].get<std::string>());
  }
}

/// Replicas that train apart from each other look like a training. It has dealt samples: a program
/// that fails before has other worries.
void tell_if_nothing_is_divided() {
  if (slot().has_value() && slot()->deals_samples && slot()->strategy.shards() &&
      slot()->group.size() > 1 && slot()->group.rank() == 0 &&
      !parallel::ddp::Core::any_made(slot()->group)) {
    log::warn(
        "[fleet.distributed_model] the strategy divides models (sharding), and rank 0 of {} gave "
        "none to distributed_model(): nothing was divided, or averaged",
        slot()->group.size());
  }
}

/// OpenBLAS of Debian knows processors with AVX-512 by their model, and argosy launch tells it.
void warn_of_kernels_without_launcher(const comm::Group& group) {
  if (group.rank() == 0 && engine::openblas_chooses_by_model()) {
    log::warn(
        "[fleet.init] virtual_ranks: without argosy launch, which chooses OpenBLAS's kernels, the "
        "bits are those of other trainings that start so, and may not be those of launched ones. "
        "Start the program by argosy launch, one process too");
  }
}

/// Wrappers notice a step inside of the passes where several virtual ranks make them. For one alone
/// it would do no harm, but the program would not run on two.
void check_no_step(Job& state, bool first_pass) {
  if (state.leaves->leaves() > 1) {
    return;
  }
  uint64_t versions = 0;
  for (const auto& known : state.prepared) {
    if (const std::shared_ptr<optim::OptimizerImpl> optimizer = known.lock()) {
      for (const auto& [name, parameter] : optimizer->parameters()) {
        versions += parameter._version();
      }
    }
  }
  ARGOSY_CHECK(first_pass || versions == state.versions_in_pass,
               "fleet.updates",
               "the parameters have changed amid the micro-batches of an update. Call "
               "optimizer.step() after the loop over them.");
  state.versions_in_pass = versions;
}

/// Ranks that compress differently would read each other's bits as another type.
void check_same_strategy(const DistributedStrategy& strategy, const comm::Group& group) {
  const std::vector<std::string> all = comm::all_gather_object(strategy.to_json(), group);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] != all[0]) {
      throw ConfigError(
          "fleet.init",
          fmt::format("rank {} has the strategy {}, rank 0 has {}. Give all ranks the "
                      "same one.",
                      rank,
                      all[rank],
                      all[0]));
    }
  }
}

/// Lets ranks divide the steps where that is wanted and pays. Returns the models that the
/// optimizer's parameters belong to.
std::vector<std::shared_ptr<parallel::ddp::Core>> divide_steps(const Job& state,
                                                               const optim::Optimizer& optimizer) {
  std::vector<std::shared_ptr<parallel::ddp::Core>> models;
  std::shared_ptr<parallel::ddp::Core> model;
  bool one_model = true;
  bool gone = false;  // some wrapper has been let go of
  bool on_cpu = true;
  size_t bytes = 0;
  for (const auto& [name, tensor] : optimizer.parameters()) {
    const auto found = state.distributed.find(tensor.unsafeGetTensorImpl());
    ARGOSY_CHECK(found != state.distributed.end(),
                 "fleet.distributed_optimizer",
                 "parameter \"{}\" is not of a distributed model: its gradient would not be "
                 "averaged over the ranks. Call distributed_model() first and build the optimizer "
                 "from what it returns.",
                 name);
    bytes += tensor.nbytes();
    on_cpu = on_cpu && tensor.is_cpu();
    const std::shared_ptr<parallel::ddp::Core> owner = found->second.lock();
    gone = gone || owner == nullptr;
    if (owner != nullptr && std::find(models.begin(), models.end(), owner) == models.end()) {
      models.push_back(owner);
    }
    one_model = one_model && (model == nullptr || model == owner);
    model = owner;
  }
  for (const std::shared_ptr<parallel::ddp::Core>& each : models) {
    each->watch(optimizer);
  }
  const DistributedStrategy& wanted = state.strategy;
  const bool divides_state = wanted.shards() && wanted.sharding_configs.stage == 1;
  const bool scatters = wanted.scatter_gradients || (wanted.shards() && !divides_state);
  const bool worth_it = bytes >= kWorthDividing || wanted.share_parameters ||
                        wanted.overlap_update || scatters || divides_state;
  const bool in_reach = on_cpu || scatters || divides_state;
  const bool own_steps = wanted.trains_apart() || wanted.dgc;  // of each rank, on all parameters
  ARGOSY_CHECK(!wanted.shards() || one_model,
               "fleet.distributed_optimizer",
               "sharding: the optimizer's parameters belong to several distributed models. Give "
               "each model one of its own.");
  bool divided = false;
  if (wanted.divide_update && !own_steps && worth_it && one_model && !gone && in_reach &&
      model != nullptr) {
    divided = model->divide_step(optimizer,
                                 {.share_parameters = wanted.share_parameters,
                                  .overlap_update = wanted.overlap_update,
                                  .divide_state = divides_state,
                                  .scatter_gradients = scatters});
  }
  const char* const obstacle = !wanted.divide_update     ? "divide_update is off"
                               : state.group.size() == 1 ? "there is one rank"
                               : gone       ? "the distributed model has been let go of"
                               : !one_model ? "the optimizer's parameters belong to several models"
                               : !in_reach  ? "its parameters are not on the CPU, where it takes "
                                              "scatter_gradients"
                               : own_steps  ? "the strategy that saves traffic makes steps itself"
                               : !worth_it  ? "it has few parameters"
                                            : nullptr;
  if (!divided) {
    const std::string without = wanted.share_parameters ? ", share_parameters has no effect"
                                : scatters              ? ", scatter_gradients has no effect"
                                                        : "";
    const std::string text = fmt::format(
        "[fleet.distributed_optimizer] each rank makes the optimizer's whole steps{}: {}",
        without,
        obstacle != nullptr                                     ? obstacle
        : !optimizer.impl()->states_per_parameter().has_value() ? "it needs whole parameters"
                                                                : "its ranks share no memory");
    const bool told = !without.empty() && state.group.size() > 1;
    log::write(told ? log::Level::kWarn : log::Level::kInfo, text);
  }
  if (wanted.overlap_update && obstacle != nullptr && state.group.size() > 1) {
    log::warn("[fleet.distributed_optimizer] overlap_update has no effect: {}", obstacle);
  }
  return models;
}

c10::Device use_device(std::string_view word, int local_rank) {
  const c10::Device device = engine::find_device(word, local_rank);
  try {
    engine::set_device(device);
  } catch (const c10::Error& error) {
    throw ConfigError("fleet.init",
                      fmt::format("the device of this process, {}, does not work: {}. See `argosy "
                                  "doctor`. Leave it out of CUDA_VISIBLE_DEVICES, or choose "
                                  "another one: --device cpu, or init()'s `device`",
                                  device.str(),
                                  error.what_without_backtrace()));
  }
  return device;
}

}  // namespace

void init(const DistributedStrategy& strategy,
          const comm::InitOptions& options,
          std::string_view device_word) {
  os::install_crash_handler();  // first: what is wrong with the call itself is told by it too
  ARGOSY_CHECK(!is_initialized(),
               "fleet.init",
               "called twice in one process. Call stop_worker() before a second init().");
  strategy.validate();
  const rendezvous::JobEnvironment environment = rendezvous::read_environment();
  engine::setup_cpu({.local_world_size = std::max(1, environment.local_world_size),
                     .local_rank = environment.local_rank});
  // First: what the device's driver does at the end of the program then comes after groups are
  // closed.
  const c10::Device device = use_device(device_word, environment.local_rank);
  comm::Group group = comm::init(options);
  check_same_strategy(strategy, group);
  parallel::Mesh mesh = make_mesh(strategy, group);
  slot().emplace(Job{.group = std::move(group),
                     .mesh = std::move(mesh),
                     .strategy = strategy,
                     .local_rank = environment.local_rank,
                     .device = device,
                     .told_of_cpu = device_word != "auto",
                     .leaves = {},
                     .distributed = {},
                     .prepared = {},
                     .run_dir = {},
                     .told_of_kernels = false,
                     .deals_samples = false});
  if (strategy.virtual_ranks > 0) {
    engine::use_threads(1);
  }
  try {
    detail::deal_to(0);
  } catch (...) {
    slot()->group.destroy();
    slot().reset();
    throw;
  }
  if (const std::vector<std::string> idle = strategy.idle_configs();
      !idle.empty() && worker_index() == 0) {
    log::warn("[fleet.init] {} without effect: as in Paddle, they act with their toggle only",
              fmt::join(idle, ", "));
  }
  static const int told_at_exit = std::atexit(tell_if_nothing_is_divided);
  static_cast<void>(told_at_exit);
  log::info("joined the job as rank {} of {}", worker_index(), worker_num());
}

std::unique_ptr<detail::ServedJob>& detail::served_job() {
  static std::unique_ptr<ServedJob> job;
  return job;
}

bool is_initialized() {
  return slot().has_value() || detail::served_job() != nullptr;
}
const comm::Group& group() {
  return job("group").group;
}
const DistributedStrategy& strategy() {
  return job("strategy").strategy;
}
const parallel::Mesh& mesh() {
  return job("mesh").mesh;
}
HybridCommunicateGroup get_hybrid_communicate_group() {
  return HybridCommunicateGroup(job("get_hybrid_communicate_group").mesh);
}
int worker_index() {
  return detail::served_job() != nullptr ? detail::served_job()->worker_index()
                                         : job("worker_index").group.rank();
}
int worker_num() {
  return detail::served_job() != nullptr ? detail::served_job()->worker_num()
                                         : job("worker_num").group.size();
}
c10::Device device() {
  return job("device").device;
}
int local_rank() {
  return job("local_rank").local_rank;
}
int64_t virtual_ranks() {
  return job("virtual_ranks").leaves->leaves();
}
bool has_spares() {
  return virtual_ranks() < worker_num();
}
bool is_first_worker() {
  return worker_index() == 0;
}
void barrier_worker() {
  if (detail::served_job() != nullptr) {
    return detail::served_job()->barrier_worker();
  }
  comm::barrier(job("barrier_worker").group);
}

void stop_worker() {
  if (detail::served_job() != nullptr) {
    return detail::served_job()->stop_worker();
  }
  job("stop_worker");
  tell_if_nothing_is_divided();
  slot()->group.destroy();
  slot().reset();
}

void all_reduce(const at::Tensor& tensor, const comm::AllReduceOptions& options) {
  comm::all_reduce(tensor, job("all_reduce").group, options);
}

at::Tensor all_reduce(const std::vector<at::Tensor>& of_virtual_ranks,
                      const comm::AllReduceOptions& options) {
  const Job& state = job("all_reduce");
  return comm::all_reduce_leaves(of_virtual_ranks, state.leaves, state.group, options);
}

void broadcast(const at::Tensor& tensor, const comm::RootOptions& options) {
  comm::broadcast(tensor, job("broadcast").group, options);
}

std::vector<at::Tensor> all_gather(const at::Tensor& tensor, const comm::TimeoutOptions& options) {
  return comm::all_gather(tensor, job("all_gather").group, options);
}

std::vector<std::string> get_file_shard(const std::vector<std::string>& files) {
  const comm::Group& all = dealing_job("get_file_shard").group;
  const IndexRange share = even_part(std::ssize(files), all.size(), all.rank());
  return {files.begin() + share.begin, files.begin() + share.end};
}

data::DistributedBatchSampler distributed_batch_sampler(int64_t dataset_size,
                                                        const SamplerOptions& options) {
  ARGOSY_CHECK(dataset_size != 0 || !options.shuffle,
               "fleet.distributed_batch_sampler",
               "the data set is empty: there is nothing to shuffle. Is its path right?");
  dealing_job("distributed_batch_sampler");
  return data::DistributedBatchSampler(dataset_size,
                                       {.batch_size = options.batch_size,
                                        .num_replicas = worker_num(),
                                        .rank = worker_index(),
                                        .shuffle = options.shuffle,
                                        .drop_last = options.drop_last,
                                        .virtual_ranks = virtual_ranks(),
                                        .micro_batches = options.micro_batches,
                                        .seed = options.seed});
}

data::BucketBatchSampler bucket_batch_sampler(std::span<const int64_t> lengths,
                                              const BucketSamplerOptions& options) {
  dealing_job("bucket_batch_sampler");
  return data::BucketBatchSampler(lengths,
                                  {.batch_size = options.batch_size,
                                   .num_replicas = worker_num(),
                                   .rank = worker_index(),
                                   .shuffle = options.shuffle,
                                   .drop_last = options.drop_last,
                                   .virtual_ranks = virtual_ranks(),
                                   .micro_batches = options.micro_batches,
                                   .seed = options.seed,
                                   .bucket_batches = options.bucket_batches});
}

data::EvaluationSampler evaluation_sampler(int64_t dataset_size,
                                           const EvaluationBatchOptions& options) {
  return data::EvaluationSampler(dataset_size,
                                 {.batch_size = options.batch_size,
                                  .num_replicas = worker_num(),
                                  .rank = worker_index(),
                                  .virtual_ranks = virtual_ranks()});
}

data::StreamShards stream_shards(const StreamOptions& options) {
  const comm::Group& all = dealing_job("stream_shards").group;
  return {.num_replicas = all.size(),
          .rank = all.rank(),
          .per_rank = options.per_rank,
          .batches = options.batches,
          .virtual_ranks = virtual_ranks(),
          .micro_batches = options.micro_batches};
}

optim::GradScaler distributed_scaler(optim::GradScaler scaler) {
  const comm::Group& all = job("distributed_scaler").group;
  if (all.size() > 1) {
    scaler.agree_by(parallel::any_rank(all));
  }
  return scaler;
}

optim::GradScaler distributed_scaler() {
  return distributed_scaler(optim::GradScaler(detail::amp_scaler()));
}

const std::string& run_dir() {
  Job& state = job("run_dir");
  if (state.run_dir.empty()) {
    std::string folder = comm::broadcast_object(
        state.group.rank() == 0 ? detail::choose_run_dir() : "", state.group);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
      throw DataError("fleet.run_dir",
                      "cannot create the folder: " + error.message() +
                          ". Start the program in a folder where it may write, or choose one: "
                          "argosy train --run_dir, or argosy launch --log_dir",
                      {folder});
    }
    state.run_dir = std::move(folder);
  }
  return state.run_dir;
}

namespace detail {

parallel::DdpOptions ddp_options() {
  constexpr double kMiB = 1 << 20;
  const DistributedStrategy& wanted = strategy();
  const ShardingConfigs& given = wanted.sharding_configs;
  std::optional<parallel::ShardOptions> shard;
  if (wanted.shards() && given.stage == 3) {
    shard = parallel::ShardOptions{.mesh = mesh(),
                                   .units = given.units,
                                   .unit_bytes = given.unit_bytes,
                                   .reshard_after_forward = given.reshard_after_forward,
                                   .mixed_precision = pure_precision()};
    if (!given.offload_folder.empty()) {
      shard->offload = parallel::Offload{given.offload_folder};
    }
  }
  return {.first_bucket_bytes = static_cast<int64_t>(wanted.last_comm_group_size_MB * kMiB),
          .bucket_cap_bytes = static_cast<int64_t>(wanted.fuse_grad_size_in_MB * kMiB),
          .find_unused_parameters = wanted.find_unused_parameters,
          .memory_format = wanted.memory_format == engine::MemoryFormat::kAuto && shard.has_value()
                               ? engine::MemoryFormat::kAsIs  // there is no trial
                               : wanted.memory_format,
          .autocast = amp_dtype(),
          .shard = shard,
          .virtual_ranks = virtual_ranks(),
          .check_drift = wanted.check_drift,
          .on_nonfinite = wanted.on_nonfinite == "stop"     ? parallel::NonfiniteGradient::kStop
                          : wanted.on_nonfinite == "ignore" ? parallel::NonfiniteGradient::kIgnore
                                                            : parallel::NonfiniteGradient::kWarn};
}

std::optional<at::ScalarType> amp_dtype() {
  const DistributedStrategy& wanted = strategy();
  return !wanted.amp || pure_precision().has_value() ? std::nullopt
         : wanted.amp_configs.dtype == "float16"     ? std::optional(at::kHalf)
                                                     : std::optional(at::kBFloat16);
}

std::optional<parallel::MixedPrecision> pure_precision() {
  const AmpConfigs& given = strategy().amp_configs;
  if (!strategy().amp || !(given.use_pure_fp16 || given.use_pure_bf16)) {
    return std::nullopt;
  }
  parallel::MixedPrecision mixed{.param_dtype = given.use_pure_fp16 ? at::kHalf : at::kBFloat16,
                                 .output_dtype = at::kFloat};
  if (given.master_grad) {
    mixed.reduce_dtype = at::kFloat;
  }
  return mixed;
}

void recompute_blocks(torch::nn::Module& module) {
  parallel::recompute_blocks(module, strategy().recompute_configs.checkpoints);
}

optim::GradScalerOptions amp_scaler() {
  const AmpConfigs& configs = strategy().amp_configs;
  return {.init_scale = configs.init_loss_scaling,
          .growth_factor = configs.incr_ratio,
          .backoff_factor = configs.decr_ratio,
          .growth_interval = configs.incr_every_n_steps,
          .enabled = strategy().amp};
}

void deal_to(int64_t virtual_ranks, bool asked) {
  Job& state = job("init");
  const int64_t wanted = virtual_ranks > 0 ? virtual_ranks : state.strategy.virtual_ranks;
  const bool tells = wanted > 0 && asked && !std::exchange(state.told_of_kernels, true);
  if (state.group.size() > 1) {
    agree_on_virtual_ranks(wanted, tells, state.group);
  }
  check_virtual_ranks(wanted, state.strategy, state.group.size());
  if (tells) {
    warn_of_kernels_without_launcher(state.group);
  }
  const int64_t leaves = wanted > 0 ? wanted : state.group.size();
  if (state.leaves != nullptr && state.leaves->leaves() == leaves) {
    return;
  }
  if (leaves < state.group.size() && state.group.rank() == 0) {
    log::warn(
        "[fleet.init] {} processes have {} virtual rank{} to compute: {} of them {}. Start as many "
        "processes as virtual ranks, or train by another recipe, with more virtual ranks",
        state.group.size(),
        leaves,
        leaves == 1 ? "" : "s",
        state.group.size() - leaves,
        state.group.size() - leaves == 1 ? "is a spare and computes nothing"
                                         : "are spares and compute nothing");
  }
  state.leaves =
      std::make_shared<comm::LeafDeal>(comm::LeafDeal::in_ranges(leaves, state.group.size()));
  parallel::ddp::Core::for_each(state.group, [&](auto& core) { core.deal_to(leaves); });
}

void begin_micro_batch(const parallel::MicroBatch& micro_batch) {
  Job& state = job("updates");
  parallel::ddp::Core::for_each(state.group, [&](auto& core) {
    ARGOSY_CHECK(core.virtual_ranks() == state.leaves->leaves(),
                 "fleet.updates",
                 "a wrapper averages over {} virtual ranks, and the job has {}. Give it "
                 ".virtual_ranks, or make it by fleet::distributed_model()",
                 core.virtual_ranks(),
                 state.leaves->leaves());
    core.begin(micro_batch);
  });
  if (micro_batch.strict) {
    check_no_step(state, micro_batch.begins_update());
    state.in_passes = true;
  }
}

void end_micro_batches() {
  Job& state = job("updates");
  if (state.in_passes) {
    check_no_step(state, false);
  }
  parallel::ddp::Core::for_each(state.group, [](auto& core) { core.end_update(); });
  state.in_passes = false;
}

void check_outside_of_passes(const char* what) {
  ARGOSY_CHECK(!is_initialized() || !slot()->in_passes,
               what,
               "called inside of the passes of an update, of which processes have different "
               "numbers. Call it after the loop over them");
}

void abandon_micro_batches() noexcept {
  if (is_initialized()) {
    slot()->in_passes = false;
    parallel::ddp::Core::for_each(slot()->group, [](auto& core) { core.abandon_update(); });
  }
}

void register_model(const engine::NamedTensors& parameters,
                    const std::shared_ptr<parallel::ddp::Core>& core) {
  Job& state = job("distributed_model");
  const bool on_cpu = std::ranges::any_of(
      parameters, [](const auto& each) { return each.second.device().is_cpu(); });
  if (on_cpu && !state.device.is_cpu() && is_first_worker() &&
      !std::exchange(state.told_of_cpu, true)) {
    log::warn(
        "[fleet.distributed_model] the model is on the CPU, and this process has {}. To train "
        "there, call net->to(fleet::device()) before distributed_model(); to leave it there, give "
        "init() the device \"cpu\"",
        state.device.str());
  }
  for (const auto& [name, tensor] : parameters) {
    state.distributed[tensor.unsafeGetTensorImpl()] = core;
  }
}

bool is_prepared(const optim::Optimizer& optimizer) {
  const auto& prepared = job("distributed_optimizer").prepared;
  return std::any_of(prepared.begin(), prepared.end(), [&](const auto& other) {
    return other.lock() == optimizer.impl();
  });
}

optim::Optimizer prepared(const optim::Optimizer& given) {
  Job& state = job("distributed_optimizer");
  const DistributedStrategy& wanted = state.strategy;
  const std::string saves_by = wanted.saves_traffic_by();
  if (is_merged(given) || (!saves_by.empty() && is_prepared(given))) {
    return given;
  }
  optim::Optimizer optimizer = is_prepared(given) ? given : for_large_batches(given, wanted);
  std::vector<std::shared_ptr<parallel::ddp::Core>> models;
  // One process has masters, too, and may have several virtual ranks.
  if (state.group.size() > 1 || pure_precision().has_value() || !saves_by.empty()) {
    models = divide_steps(state, optimizer);
  }
  for (const auto& other : state.prepared) {
    if (const auto former = other.lock()) {
      end_merging(*former, optimizer);
    }
  }
  if (wanted.gradient_merge && wanted.gradient_merge_configs.k_steps == 1) {
    log::warn(
        "[fleet.distributed_optimizer] gradient_merge has no effect: "
        "gradient_merge_configs.k_steps is 1");
  }
  if (wanted.gradient_merge && wanted.gradient_merge_configs.k_steps > 1) {
    optimizer = merge_gradients(optimizer, wanted.gradient_merge_configs, models);
  }
  if (!saves_by.empty() && !models.empty()) {
    optimizer = save_traffic(optimizer, wanted, models);
  }
  std::erase_if(state.prepared, [](const auto& other) { return other.expired(); });
  state.prepared.emplace_back(optimizer.impl());
  return optimizer;
}

WholeModels::WholeModels() {
  if (is_initialized()) {
    parallel::ddp::Core::for_each(slot()->group, [](auto& core) { core.hold_parameters(true); });
  }
}

WholeModels::~WholeModels() {
  if (is_initialized()) {
    parallel::ddp::Core::for_each(slot()->group, [](auto& core) { core.hold_parameters(false); });
  }
}

/// Two programs that start in the same second must not share theirs.
std::string choose_run_dir() {
  if (const std::optional<std::string> given = env::get("ARGOSY_LOG_DIR")) {
    return *given;
  }
  std::error_code ignored;  // run_dir() reports what cannot be made
  std::filesystem::create_directories("runs", ignored);
  const std::string base =
      std::filesystem::absolute("runs/" + text::stamp(std::chrono::system_clock::now())).string();
  std::string folder = base;
  for (int n = 2; n < 100 && !std::filesystem::create_directory(folder, ignored); ++n) {
    folder = fmt::format("{}-{}", base, n);
  }
  return folder;
}

void print_line(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace detail
}  // namespace argosy::fleet
