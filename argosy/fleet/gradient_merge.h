#pragma once

#include <memory>
#include <vector>

#include "argosy/fleet/strategy.h"
#include "argosy/optim/optimizer.h"
#include "argosy/parallel/ddp/distributed_data_parallel.h"

// Internal to the room.
namespace argosy::fleet::detail {

/// Returns an optimizer whose step() acts at each k-th call, on the gradients of the k passes since
/// its last update: their sum, or their average with GradientMergeConfigs::avg. The passes between
/// are under no_sync() of `models`, and zero_grad() does nothing there.
[[nodiscard]] optim::Optimizer merge_gradients(
    const optim::Optimizer& optimizer,
    const GradientMergeConfigs& configs,
    const std::vector<std::shared_ptr<parallel::ddp::Core>>& models);

/// True for an optimizer that merge_gradients() returned.
[[nodiscard]] bool is_merged(const optim::Optimizer& optimizer);

/// Ends the merging of `former` if merge_gradients() made it and it updates parameters of
/// `optimizer`, which replaces it. step() of `former` is then an error.
void end_merging(optim::OptimizerImpl& former, const optim::Optimizer& optimizer);

}  // namespace argosy::fleet::detail
