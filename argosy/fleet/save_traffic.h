#pragma once

#include <memory>
#include <vector>

#include "argosy/fleet/strategy.h"
#include "argosy/optim/optimizer.h"
#include "argosy/parallel/ddp/distributed_data_parallel.h"

// Internal to the room.
namespace argosy::fleet::detail {

/// Returns the optimizer with the strategy's localsgd, adaptive_localsgd, dgc, power_sgd or diloco,
/// one of which is on. Collective.
/// Errors: UsageError for an optimizer of several models, and those of parallel::compress() and
/// parallel::train_apart().
[[nodiscard]] optim::Optimizer save_traffic(
    const optim::Optimizer& optimizer,
    const DistributedStrategy& strategy,
    const std::vector<std::shared_ptr<parallel::ddp::Core>>& models);

}  // namespace argosy::fleet::detail
