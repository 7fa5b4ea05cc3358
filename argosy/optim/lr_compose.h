#pragma once

#include <cstdint>
#include <vector>

#include "argosy/optim/lr_scheduler.h"

namespace argosy::optim {

/// One schedule after another. The second begins at milestones[0], with its own step 0.
///
///     optim::SequentialLR scheduler({optim::LinearLR(optimizer, {.start_factor = 0.1,
///                                                                .total_iters = 5}),
///                                    optim::CosineAnnealingLR(optimizer, {.t_max = 95})}, {5});
///
/// All parts start from the base rates of the first one, so make it first, as in this list. From
/// now on step this scheduler, not its parts.
/// Errors: UsageError unless there is one milestone fewer than parts, in rising order, all parts
/// belong to one optimizer, and none has rates of its own (PiecewiseDecay, OneCycleLR, CyclicLR).
/// Source: torch.optim.lr_scheduler 2.x, SequentialLR.
class SequentialLR final : public LRScheduler {
 public:
  SequentialLR(const std::vector<LRScheduler>& schedulers, std::vector<int64_t> milestones);
};

/// All schedules at once: the base rate times the factor of each.
///
///     optim::ChainedScheduler scheduler({optim::ConstantLR(optimizer, {.factor = 0.1}),
///                                        optim::ExponentialLR(optimizer, {.gamma = 0.9})});
///
/// All parts start from the base rates of the first one, so make it first.
/// Errors: UsageError as SequentialLR, and for a part that is no factor of its base (an eta_min or
/// end_lr above 0). PyTorch's result with these depends on all steps before, so a number could not
/// resume it.
/// Source: torch.optim.lr_scheduler 2.x, ChainedScheduler.
class ChainedScheduler final : public LRScheduler {
 public:
  explicit ChainedScheduler(const std::vector<LRScheduler>& schedulers);
};

}  // namespace argosy::optim
