#pragma once

#include <memory>

#include "argosy/optim/optimizer.h"
#include "argosy/parallel/ddp/distributed_data_parallel.h"
#include "argosy/parallel/traffic/deep_gradient_compression.h"
#include "argosy/parallel/traffic/gradient_compressor.h"
#include "argosy/parallel/traffic/power_sgd.h"

namespace argosy::parallel {

/// Lets `model` average its gradients with less traffic, and returns the optimizer to use from now
/// on: its step() belongs to it, and its state_dict() has what is remembered from step to step.
///
///     parallel::DistributedDataParallel model(net, world);
///     optim::Optimizer optimizer = parallel::compress(
///         model, optim::Adam(model, {.lr = 1e-3}), parallel::PowerSgdOptions{.matrix_approximation_rank = 2});
///
/// PowerSgdOptions go with any optimizer, DgcOptions with momentum only. What is remembered belongs
/// to a virtual rank, so any number of processes has the same bits; with one virtual rank nothing
/// is compressed. Call it on all ranks alike, once for a wrapper, before the first backward.
/// State: what virtual ranks have of their own (the error, what is not sent yet) is one tensor
/// [virtual ranks, elements] in state_dict(), of which a checkpoint takes each process's rows; as
/// many virtual ranks resume it. Errors: UsageError for an optimizer that it does not go with, for
/// divided parameters (fully_shard()), for find_unused_parameters, and where there is a
/// communication hook.
[[nodiscard]] optim::Optimizer compress(const std::shared_ptr<ddp::Core>& model,
                                        const optim::Optimizer& optimizer,
                                        const PowerSgdOptions& options);
[[nodiscard]] optim::Optimizer compress(const std::shared_ptr<ddp::Core>& model,
                                        const optim::Optimizer& optimizer,
                                        const DgcOptions& options);
/// The same by a way of your own.
[[nodiscard]] optim::Optimizer compress(const std::shared_ptr<ddp::Core>& model,
                                        const optim::Optimizer& optimizer,
                                        const std::shared_ptr<GradientCompressor>& compressor);

template <typename M, typename Options>
[[nodiscard]] optim::Optimizer compress(const DistributedDataParallel<M>& model,
                                        const optim::Optimizer& optimizer,
                                        const Options& options) {
  return compress(model.core(), optimizer, options);
}

}  // namespace argosy::parallel
