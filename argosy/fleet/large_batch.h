#pragma once

#include "argosy/fleet/strategy.h"
#include "argosy/optim/optimizer.h"

// Internal to the room.
namespace argosy::fleet::detail {

/// Returns the optimizer that strategy.lars or strategy.lamb puts in the place of `optimizer`: with
/// its parameters, groups, learning rates and clipping, and its momentum, or betas and eps. Returns
/// `optimizer` itself if both toggles are off.
/// Errors: ConfigError for an optimizer that the toggle does not act on.
/// Source: Paddle 3.3, fleet/meta_optimizers/lars_optimizer.py and lamb_optimizer.py.
[[nodiscard]] optim::Optimizer for_large_batches(const optim::Optimizer& optimizer,
                                                 const DistributedStrategy& strategy);

}  // namespace argosy::fleet::detail
