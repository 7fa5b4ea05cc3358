#pragma once

#include <concepts>

#include "argosy/comm/group.h"
#include "argosy/engine/named.h"

namespace torch::nn {
class Module;
}  // namespace torch::nn

namespace argosy::parallel {

/// From now on, while training, all norms in `module` take mean and variance over the batches of
/// all ranks of `group` together, and gradients pass through these: N ranks with b samples each
/// train like one process with N·b. Batches may differ in size, and one may be empty. In evaluation
/// mode nothing is exchanged. Networks of argosy::vision are ready for it.
///
///     vision::ResNet net({.depth = 34});
///     parallel::convert_sync_batchnorm(net, group);
///     parallel::DistributedDataParallel model(net, group);
///
/// Collective: all ranks call it, and then run the same norms in the same order; not inside
/// DistributedDataParallel::join(), where ranks stop at different steps. Cost of a norm: an
/// all-gather of 2 C + 1 f64 forward and an all-reduce of 2 C backward, on a group of its own;
/// through the host's memory, whatever the device. Ranks that are threads of one process need a
/// device each, or the CPU: autograd has one thread for each device, in which they would wait.
/// Weights and biases of norms get the gradients of the rank's own batch, which
/// DistributedDataParallel averages, as PyTorch's do.
/// Errors: UsageError naming the norms that are torch::nn::BatchNorm*: libtorch's cannot be changed
/// from outside; and for a module without any norm.
/// Source: torch.nn.SyncBatchNorm.convert_sync_batchnorm; PyTorch's has no CPU.
void convert_sync_batchnorm(const torch::nn::Module& module, const comm::Group& group);
/// The same for what holds or wraps a module: see engine::module_of().
template <typename Holder>
requires(!std::derived_from<Holder, torch::nn::Module>) void convert_sync_batchnorm(
    const Holder& holder, const comm::Group& group) {
  convert_sync_batchnorm(engine::module_of(holder), group);
}

}  // namespace argosy::parallel
