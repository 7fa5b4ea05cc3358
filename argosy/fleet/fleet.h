#pragma once

#include <fmt/format.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/checkpoint/save_weights.h"
#include "argosy/comm/comm.h"
#include "argosy/data/batch_sampler.h"
#include "argosy/engine/named.h"
#include "argosy/engine/state_dict.h"
#include "argosy/fleet/strategy.h"
#include "argosy/optim/grad_scaler.h"
#include "argosy/optim/optimizer.h"
#include "argosy/parallel/convert_sync_batchnorm.h"
#include "argosy/parallel/ddp/distributed_data_parallel.h"

/// The facade: the five steps of distributed training, with the job's group kept for the program.
///
///     fleet::init();                                              // 1 environment of the launcher
///     fleet::distributed_batch_sampler(train.size(), {…});        // 2 split the data
///     auto model = fleet::distributed_model(Net());               // 3 wrap the model
///     auto optimizer = fleet::distributed_optimizer(optim::Adam(model, {…}));  // 4
///     // 5: argosy launch --nproc_per_node 4 ./train
///
/// The only room with process-global state. Not thread-safe: one thread calls it. Without a
/// launcher's variables the same program is a job of one process.
namespace argosy::fleet {

/// Joins the job. Collective over its processes.
/// Errors: ConfigError (strategy or environment), TimeoutError naming the ranks that did not come,
/// UsageError when called twice without stop_worker().
void init(const DistributedStrategy& strategy = {}, const comm::InitOptions& options = {});
[[nodiscard]] bool is_initialized();

/// All functions below: UsageError "call fleet::init() first" before init().

[[nodiscard]] const comm::Group& group();  ///< all ranks of the job
[[nodiscard]] const DistributedStrategy& strategy();
[[nodiscard]] int worker_index();  ///< rank of this process; Paddle also says rank
[[nodiscard]] int worker_num();    ///< number of ranks; Paddle also says nranks, world_size
[[nodiscard]] int local_rank();    ///< rank among the processes of this host
[[nodiscard]] bool is_first_worker();
/// Returns when all ranks have called it; names the missing ones at the timeout.
void barrier_worker();
/// Leaves the job: waits for running operations, says goodbye. Optional at the end of a program.
void stop_worker();

/// The same under the names of torch.distributed and paddle.distributed.
[[nodiscard]] inline int get_rank() {
  return worker_index();
}
[[nodiscard]] inline int get_world_size() {
  return worker_num();
}
void all_reduce(const at::Tensor& tensor, const comm::ReduceOptions& options = {});
void broadcast(const at::Tensor& tensor, const comm::RootOptions& options = {});
[[nodiscard]] std::vector<at::Tensor> all_gather(const at::Tensor& tensor);

/// The files of this rank: contiguous blocks, the first (files % ranks) ranks get one more; ranks
/// without a file get none. Source: paddle.distributed.fleet UtilBase.get_file_shard.
[[nodiscard]] std::vector<std::string> get_file_shard(const std::vector<std::string>& files);

struct SamplerOptions {
  int64_t batch_size = 1;  ///< per rank
  bool shuffle = false;
  bool drop_last = false;
  uint64_t seed = 0;  ///< 0: Paddle's own order, which depends on the epoch alone
};
/// Batches of this rank, in Paddle's order; every rank gets equally many.
[[nodiscard]] data::DistributedBatchSampler distributed_batch_sampler(
    int64_t dataset_size, const SamplerOptions& options);
/// Batches that cover every sample exactly once over all ranks; ranks may get fewer or none.
[[nodiscard]] data::EvaluationSampler evaluation_sampler(int64_t dataset_size,
                                                         const SamplerOptions& options);

namespace detail {
[[nodiscard]] parallel::DdpOptions ddp_options();
void register_model(const engine::NamedTensors& parameters,
                    const std::shared_ptr<parallel::ddp::Core>& core);
void prepare_optimizer(const optim::Optimizer& optimizer);
/// Whether distributed_optimizer() has seen it, under any handle.
[[nodiscard]] bool is_prepared(const optim::Optimizer& optimizer);
void print_line(const std::string& text);
}  // namespace detail

/// Wraps a module for data-parallel training, as the strategy says. Collective.
/// See parallel::DistributedDataParallel for what it checks and does.
template <typename Module>
[[nodiscard]] auto distributed_model(Module module) {
  if (strategy().sync_batch_norm) {
    parallel::convert_sync_batchnorm(module, group());
  }
  parallel::DistributedDataParallel model(std::move(module), group(), detail::ddp_options());
  if (strategy().fp16_allreduce) {
    model.register_comm_hook(parallel::fp16_compress(), "fp16");
  } else if (strategy().bf16_allreduce) {
    model.register_comm_hook(parallel::bf16_compress(), "bf16");
  }
  detail::register_model(engine::named_parameters(model), model.core());
  return model;
}

/// Prepares an optimizer for the distributed model whose parameters it updates, and returns it.
/// Collective. Where the ranks share memory and all parameters are of one model, its steps are
/// divided between them: see DistributedDataParallel::divide_step() and
/// DistributedStrategy::divide_update. Errors: UsageError naming a parameter that belongs to no
/// distributed_model(): its gradients would not be averaged, and the ranks would drift apart
/// without a word.
template <std::derived_from<optim::Optimizer> Optimizer>
[[nodiscard]] Optimizer distributed_optimizer(Optimizer optimizer) {
  detail::prepare_optimizer(optimizer);
  return optimizer;
}

/// The scaler for a loop of one's own: all ranks skip the same updates, also where their gradients
/// differ (parameters of no distributed model). Its unscale_() and step() are collective from here
/// on. See parallel::any_rank().
[[nodiscard]] optim::GradScaler distributed_scaler(optim::GradScaler scaler);

/// Prints on rank 0 only, and flushes.
template <typename... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  if (is_first_worker()) {
    detail::print_line(fmt::format(format, std::forward<Args>(args)...));
  }
}

/// Writes the model's weights on rank 0, atomically, and returns on every rank when they are there.
/// The ending says how: .pt and .pth for torch.load(path), .safetensors, .pdparams. Collective.
/// Errors: CheckpointError, on every rank, when rank 0 cannot write; UsageError: another ending.
template <typename Model>
void save(const Model& model, const std::string& path) {
  checkpoint::save_weights_together(engine::module_of(model), path, group());
}

/// Folder for this run's results, equal on all ranks and existing on return: ARGOSY_LOG_DIR (set by
/// the launcher), else runs/<date>-<time>, chosen by rank 0. Collective on the first call.
[[nodiscard]] const std::string& run_dir();

}  // namespace argosy::fleet
