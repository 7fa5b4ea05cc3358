#pragma once

#include <memory>

#include "argosy/optim/optimizer.h"
#include "argosy/parallel/ddp/distributed_data_parallel.h"
#include "argosy/parallel/traffic/diloco.h"
#include "argosy/parallel/traffic/local_sgd.h"

namespace argosy::parallel {

/// Lets the virtual ranks of `model` train weights of their own for some steps at a time, and
/// returns the optimizer to use from now on, which sums them up inside of step().
///
///     parallel::DistributedDataParallel model(net, world);
///     optim::Optimizer optimizer = parallel::train_apart(
///         model, optim::AdamW(model, {.lr = 3e-4}), parallel::DilocoOptions{.sync_every = 100});
///
/// Between two sums ranks differ: for an evaluation and for weights to keep, call
/// optimizer.use_shared_weights(true) before and (false) after; fit(), evaluate() and save() of
/// train::Model do. Buffers become virtual rank 0's at each sum. Call it on all ranks alike, once
/// for a wrapper. With one virtual rank localsgd changes nothing; diloco's outer step acts there
/// too. State: see LocalSteps; as many virtual ranks resume it. Errors: UsageError for an optimizer
/// that it does not go with or that lacks a trainable parameter, for processes without a virtual
/// rank, and for divided parameters (fully_shard()).
[[nodiscard]] optim::Optimizer train_apart(const std::shared_ptr<ddp::Core>& model,
                                           const optim::Optimizer& optimizer,
                                           const LocalSgdOptions& options);
[[nodiscard]] optim::Optimizer train_apart(const std::shared_ptr<ddp::Core>& model,
                                           const optim::Optimizer& optimizer,
                                           const AdaptiveLocalSgdOptions& options);
[[nodiscard]] optim::Optimizer train_apart(const std::shared_ptr<ddp::Core>& model,
                                           const optim::Optimizer& optimizer,
                                           const DilocoOptions& options);

template <typename M, typename Options>
[[nodiscard]] optim::Optimizer train_apart(const DistributedDataParallel<M>& model,
                                           const optim::Optimizer& optimizer,
                                           const Options& options) {
  return train_apart(model.core(), optimizer, options);
}

}  // namespace argosy::parallel
