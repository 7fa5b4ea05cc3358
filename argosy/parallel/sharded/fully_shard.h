#pragma once

#include <utility>

#include "argosy/comm/group.h"
#include "argosy/parallel/ddp/distributed_data_parallel.h"
#include "argosy/parallel/ddp/options.h"
#include "argosy/parallel/mesh.h"

namespace argosy::parallel {

/// Wraps a model so that each rank of the group keeps 1/N of its parameters, gradients and
/// optimizer's state (ZeRO stage 3, PyTorch's fully_shard()). The results have the bits of
/// DistributedDataParallel.
///
///     auto model = parallel::fully_shard(net, world);
///     auto optimizer = optim::AdamW(model, {.lr = 3e-4});
///     model.divide_step(optimizer);             // fleet::distributed_optimizer() does it
///     loss(model(tokens)).backward();
///     optimizer.step();
///
/// Modules stay as they are, torch::nn's own too. Their parameters are divided in units, such as
/// the blocks of a ModuleList (ShardOptions::units). Ranks of one host have the values once, in
/// memory that they share: each writes its part and reads all. Over several hosts, and on devices,
/// a unit is gathered when an operator of libtorch is about to use one of its parameters, in
/// forward and in backward, and the next one beside it; it goes when two others have been used
/// since. Gradients are reduced to the rank that updates them, unit by unit. Wherever grad() is
/// read or written by an operator of libtorch, or a parameter written, or one read that is
/// gathered, all ranks must do so: what all ranks write alike is kept.
///
/// Collective: as DistributedDataParallel; each use of a unit that is not whole; step() and
/// state_dict() of the optimizer; the first use of parameters that were written in another way.
/// Where units are gathered, ranks must use them in the same order.
/// Does not work with kernels that take data_ptr() of a parameter and say so by no
/// engine::DirectUse, nor with communication hooks and overlap_update. join() works: see Join.
/// When the wrapper is let go of, the optimizer makes no more steps, and those tensors of its
/// state_dict() are lost that nobody has copied.
/// Errors: as DistributedDataParallel. What stops a gather is thrown at the end of forward or of
/// backward.
/// Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter
/// Models", 2020; PyTorch's FSDP2.
template <typename M>
[[nodiscard]] DistributedDataParallel<M> fully_shard(M module,
                                                     const comm::Group& group,
                                                     DdpOptions options = {}) {
  if (!options.shard.has_value()) {
    options.shard.emplace();
  }
  return DistributedDataParallel<M>(std::move(module), group, options);
}

/// The same for the ranks of a mesh: those along its axis "sharding" divide the parameters, and
/// those along its other axes replicate them.
///
///     const parallel::Mesh mesh(world, {{"dp", -1}, {"sharding", 4}});
///     auto model = parallel::fully_shard(net, mesh);
template <typename M>
[[nodiscard]] DistributedDataParallel<M> fully_shard(M module,
                                                     const Mesh& mesh,
                                                     DdpOptions options = {}) {
  if (!options.shard.has_value()) {
    options.shard.emplace();
  }
  options.shard->mesh = mesh;
  return fully_shard(std::move(module), mesh.ranks(), options);
}

}  // namespace argosy::parallel
