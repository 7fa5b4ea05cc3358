#pragma once

#include <fmt/format.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "argosy/checkpoint/save_weights.h"
#include "argosy/comm/comm.h"
#include "argosy/data/batch_sampler.h"
#include "argosy/data/bucket_batch_sampler.h"
#include "argosy/data/iterable_dataset.h"
#include "argosy/engine/named.h"
#include "argosy/engine/state_dict.h"
#include "argosy/fleet/hybrid.h"
#include "argosy/fleet/strategy.h"
#include "argosy/optim/grad_scaler.h"
#include "argosy/optim/optimizer.h"
#include "argosy/parallel/convert_sync_batchnorm.h"
#include "argosy/parallel/ddp/distributed_data_parallel.h"

/// The facade: the five steps of distributed training. It keeps the job's group for the program.
///
///     fleet::init();                                              // 1 environment of the launcher
///     fleet::distributed_batch_sampler(train.size(), {…});        // 2 split the data
///     auto model = fleet::distributed_model(Net());               // 3 wrap the model
///     auto optimizer = fleet::distributed_optimizer(optim::Adam(model, {…}));  // 4
///     // 5: argosy launch --nproc_per_node 4 ./train
///
/// Without a launcher's variables the same program is a job of one process. This is the only room
/// with process-global state. Not thread-safe: call it from one thread.
namespace argosy::fleet {

/// Joins the job. Collective over its processes. `device` is this process's: see
/// engine::find_device(). It becomes the thread's current one before anything is allocated.
/// Errors: ConfigError (strategy, environment, a device that does not work), TimeoutError naming
/// the missing ranks, UsageError if called twice without stop_worker() or for a device that is not
/// there.
void init(const DistributedStrategy& strategy = {},
          const comm::InitOptions& options = {},
          std::string_view device = "auto");
[[nodiscard]] bool is_initialized();

/// Before init(), all functions below throw a UsageError: "call fleet::init() first".

[[nodiscard]] const comm::Group& group();  ///< all ranks of the job
[[nodiscard]] const DistributedStrategy& strategy();
/// The ranks by the axes of DistributedStrategy::hybrid_configs.
[[nodiscard]] const parallel::Mesh& mesh();
/// The same in Paddle's words.
[[nodiscard]] HybridCommunicateGroup get_hybrid_communicate_group();
[[nodiscard]] int worker_index();  ///< rank of this process
[[nodiscard]] int worker_num();    ///< number of ranks
[[nodiscard]] int local_rank();    ///< rank among the processes of this host
[[nodiscard]] bool is_first_worker();
/// The device of this process, which init() was told. Without a word: the accelerator by its number
/// among the processes of the host, or the CPU where there is none.
///
///     net->to(fleet::device());    // before distributed_model()
[[nodiscard]] c10::Device device();
/// The number of virtual ranks: DistributedStrategy::virtual_ranks, or that of the ranks.
[[nodiscard]] int64_t virtual_ranks();
/// True if there are more ranks than virtual ranks. Those beyond are spares: they hold the same
/// weights as the others, and compute nothing.
[[nodiscard]] bool has_spares();
/// Returns when all ranks have called it. The error at the timeout names the missing ranks.
void barrier_worker();
/// Waits for running operations and leaves the job. Optional at the end of a program.
void stop_worker();

/// The same under the names of torch.distributed and paddle.distributed.
[[nodiscard]] inline int get_rank() {
  return worker_index();
}
[[nodiscard]] inline int get_world_size() {
  return worker_num();
}
void all_reduce(const at::Tensor& tensor, const comm::AllReduceOptions& options = {});
/// Reduces a figure of the virtual ranks, one tensor for each of this process's in their order,
/// into a new one: with the same bits on any number of processes.
[[nodiscard]] at::Tensor all_reduce(const std::vector<at::Tensor>& of_virtual_ranks,
                                    const comm::AllReduceOptions& options = {});
void broadcast(const at::Tensor& tensor, const comm::RootOptions& options = {});
[[nodiscard]] std::vector<at::Tensor> all_gather(const at::Tensor& tensor,
                                                 const comm::TimeoutOptions& options = {});

/// Returns this rank's block of `files`. The first (files % ranks) ranks get one file more; with
/// fewer files than ranks, some get none.
/// Source: paddle.distributed.fleet UtilBase.get_file_shard.
[[nodiscard]] std::vector<std::string> get_file_shard(const std::vector<std::string>& files);

struct SamplerOptions {
  int64_t batch_size = 1;  ///< per virtual rank
  bool shuffle = false;
  bool drop_last = false;
  uint64_t seed = 0;          ///< 0: Paddle's own order, which depends only on the epoch
  int64_t micro_batches = 1;  ///< batches of each virtual rank in an update; for fleet::updates()
};
/// Returns the batches of this rank in Paddle's order. Every virtual rank gets the same number.
/// Errors: UsageError for an empty data set with shuffle.
[[nodiscard]] data::DistributedBatchSampler distributed_batch_sampler(
    int64_t dataset_size, const SamplerOptions& options);
struct BucketSamplerOptions {
  int64_t batch_size = 1;  ///< per virtual rank
  bool shuffle = true;
  bool drop_last = false;
  uint64_t seed = 0;
  int64_t micro_batches = 1;    ///< batches of each virtual rank in an update; for fleet::updates()
  int64_t bucket_batches = 64;  ///< see data::BucketBatchSamplerOptions
};
/// Returns the batches of this rank, of samples of like length. Every virtual rank gets the same
/// number.
/// Errors: as of data::BucketBatchSampler.
[[nodiscard]] data::BucketBatchSampler bucket_batch_sampler(std::span<const int64_t> lengths,
                                                            const BucketSamplerOptions& options);
struct EvaluationBatchOptions {
  int64_t batch_size = 1;  ///< per virtual rank
};
/// Returns batches that cover every sample exactly once over all ranks, in the same batches on any
/// number of processes. Ranks may get fewer batches or none.
[[nodiscard]] data::EvaluationSampler evaluation_sampler(int64_t dataset_size,
                                                         const EvaluationBatchOptions& options);

struct StreamOptions {
  int per_rank = 1;                  ///< streams that are read side by side for a virtual rank
  std::optional<int64_t> batches{};  ///< of each virtual rank in an epoch
  int64_t micro_batches = 1;         ///< of each virtual rank in an update
};
/// Returns this rank's part of a stream (data::IterableDataset), for a DataLoader. With more
/// virtual ranks than processes, or fewer, it needs `batches`.
[[nodiscard]] data::StreamShards stream_shards(const StreamOptions& options = {});

namespace detail {
[[nodiscard]] parallel::DdpOptions ddp_options();
/// Returns the dtype of the strategy's amp, or nullopt if it is off.
[[nodiscard]] std::optional<at::ScalarType> amp_dtype();
[[nodiscard]] optim::GradScalerOptions amp_scaler();
/// Returns what amp_configs says of 16-bit parameters (O2); nullopt: they are f32.
[[nodiscard]] std::optional<parallel::MixedPrecision> pure_precision();
/// Those of the strategy's recompute.
void recompute_blocks(torch::nn::Module& module);
/// Goes on with another number of virtual ranks; 0: the strategy's. `asked`: somebody chose them,
/// so that what spoils their promise is told once. Collective, between two updates. Errors:
/// ConfigError on all ranks that were given different numbers.
void deal_to(int64_t virtual_ranks, bool asked = true);
/// Tells all distributed models which pass follows; see DistributedDataParallel::begin().
void begin_micro_batch(const parallel::MicroBatch& micro_batch);
void end_micro_batches();
/// Errors: UsageError, in whose message `what` was called, between the begin and the end of an
/// update.
void check_outside_of_passes(const char* what);
/// Forgets an update that was left.
void abandon_micro_batches() noexcept;
void register_model(const engine::NamedTensors& parameters,
                    const std::shared_ptr<parallel::ddp::Core>& core);
/// Returns the optimizer that the strategy makes of this one, ready for use.
[[nodiscard]] optim::Optimizer prepared(const optim::Optimizer& given);
/// Collective: while it lives, each rank has all parameters of the job's distributed models.
class WholeModels final {
 public:
  WholeModels();
  ~WholeModels();
  WholeModels(const WholeModels&) = delete;
  WholeModels& operator=(const WholeModels&) = delete;
  WholeModels(WholeModels&&) = delete;
  WholeModels& operator=(WholeModels&&) = delete;
};
/// True if distributed_optimizer() has seen it, under any handle.
[[nodiscard]] bool is_prepared(const optim::Optimizer& optimizer);
void print_line(const std::string& text);
/// Returns the launcher's folder for this run, else a new one, which it makes.
[[nodiscard]] std::string choose_run_dir();
}  // namespace detail

/// Wraps a module for data-parallel training, as the strategy says; see
/// parallel::DistributedDataParallel. Collective.
template <typename Module>
[[nodiscard]] auto distributed_model(Module module) {
  if (strategy().sync_batch_norm) {
    parallel::convert_sync_batchnorm(module, group());
  }
  parallel::DistributedDataParallel model(std::move(module), group(), detail::ddp_options());
  if (strategy().recompute) {
    detail::recompute_blocks(*model.operator->());
  }
  if (strategy().fp16_allreduce) {
    model.register_comm_hook(parallel::fp16_compress(), "fp16");
  } else if (strategy().bf16_allreduce) {
    model.register_comm_hook(parallel::bf16_compress(), "bf16");
  }
  detail::register_model(engine::named_parameters(model), model.core());
  return model;
}

/// Prepares an optimizer for the distributed model whose parameters it updates, and returns it. If
/// the ranks share memory and all parameters belong to one model, the ranks divide its steps: see
/// DistributedDataParallel::divide_step() and DistributedStrategy::divide_update. Collective.
/// With DistributedStrategy::lars, lamb, gradient_merge or a strategy that saves traffic it returns
/// a new optimizer; do not use the one that you passed in. Errors: UsageError naming a parameter
/// that belongs to no distributed_model(). Its gradients would not be averaged, and the ranks would
/// silently diverge. ConfigError if lars or lamb do not act on this optimizer, UsageError if a
/// strategy that saves traffic does not.
template <std::derived_from<optim::Optimizer> Optimizer>
[[nodiscard]] Optimizer distributed_optimizer(Optimizer optimizer) {
  static_cast<optim::Optimizer&>(optimizer) = detail::prepared(optimizer);
  return optimizer;
}

/// Says in a sentence that an optimizer is not one of Argosy's.
template <typename Optimizer>
requires(!std::derived_from<std::remove_cvref_t<Optimizer>,
                            optim::Optimizer>) void distributed_optimizer(Optimizer&&) {
  static_assert(std::derived_from<std::remove_cvref_t<Optimizer>, optim::Optimizer>,
                "torch::optim's optimizers need no preparation: use them as they are beside "
                "distributed_model(…), whose gradients are averaged; see "
                "docs/reference/libtorch.md");
}

/// Returns the scaler for a loop of your own. All ranks then skip the same updates, even if their
/// gradients differ (parameters of no distributed model). Its unscale_() and step() become
/// collective. See parallel::any_rank().
[[nodiscard]] optim::GradScaler distributed_scaler(optim::GradScaler scaler);
/// Returns the scaler that the strategy's amp_configs describe, likewise. It does nothing if the
/// strategy's amp is off, so one program serves both.
[[nodiscard]] optim::GradScaler distributed_scaler();

/// Prints and flushes on rank 0; does nothing on other ranks.
template <typename... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  if (is_first_worker()) {
    detail::print_line(fmt::format(format, std::forward<Args>(args)...));
  }
}

/// Writes the model's weights on rank 0, atomically, and returns on every rank when they are there.
/// Where parameters are divided, all ranks have all of them meanwhile.
/// The ending chooses the format: .pt and .pth for torch.load(path), .safetensors, .pdparams.
/// Collective.
/// Errors: CheckpointError on every rank if rank 0 cannot write; UsageError for another ending, and
/// inside of the passes of an update.
template <typename Model>
void save(const Model& model, const std::string& path) {
  detail::check_outside_of_passes("fleet.save");
  const detail::WholeModels whole;
  checkpoint::save_weights_together(engine::module_of(model), path, group());
}

/// Returns the folder for this run's results, which exists and is equal on all ranks:
/// ARGOSY_LOG_DIR (set by the launcher), else runs/<date>-<time> by rank 0's clock. Collective on
/// the first call.
[[nodiscard]] const std::string& run_dir();

}  // namespace argosy::fleet
