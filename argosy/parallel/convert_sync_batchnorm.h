#pragma once

#include <concepts>

#include "argosy/comm/group.h"
#include "argosy/engine/named.h"

namespace torch::nn {
class Module;
}  // namespace torch::nn

namespace argosy::parallel {

/// Makes all norms in `module` use mean and variance over the batches of all ranks of `group` in
/// training, with gradients through them. N ranks with b samples each then train like one process
/// with N·b. Batches may differ in size or be empty. In evaluation mode nothing is exchanged.
/// Networks of argosy::vision are ready for it, and so is SyncBatchNorm2d (1d, 3d).
///
/// Libtorch's own torch::nn::BatchNorm1d, 2d and 3d are replaced inside a Sequential, at any depth;
/// the replacement has the same parameters, so an optimizer may exist already. A norm that a module
/// of yours calls through its own member (`bn1->forward(x)`) cannot be replaced from outside, and
/// is refused before anything is changed. Do not keep a handle on a norm that is replaced.
///
///     vision::ResNet net({.depth = 34});
///     parallel::convert_sync_batchnorm(net, group);
///     parallel::DistributedDataParallel model(net, group);
///
/// Collective: all ranks call it, and then run the same norms in the same order. Do not use it
/// inside DistributedDataParallel::join(), where ranks stop at different steps. Ranks that are
/// threads of one process need a device each, or the CPU, because autograd has one thread per
/// device. Weights and biases of norms get the gradients of the rank's own batch, which
/// DistributedDataParallel averages, as in PyTorch.
/// Cost: per norm, an all-gather of 2 C + 1 f64 forward and an all-reduce of 2 C backward, on a
/// group of its own, through the host's memory.
/// Errors: UsageError naming libtorch's norms that cannot be replaced, and for a module without
/// norms.
/// Source: torch.nn.SyncBatchNorm.convert_sync_batchnorm; PyTorch's has no CPU.
void convert_sync_batchnorm(const torch::nn::Module& module, const comm::Group& group);
/// The same for a holder or a wrapper of a module; see engine::module_of().
template <typename Holder>
requires(!std::derived_from<Holder, torch::nn::Module>) void convert_sync_batchnorm(
    const Holder& holder, const comm::Group& group) {
  convert_sync_batchnorm(engine::module_of(holder), group);
}

}  // namespace argosy::parallel
