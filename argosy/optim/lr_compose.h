#pragma once

#include <cstdint>
#include <vector>

#include "argosy/optim/lr_scheduler.h"

namespace argosy::optim {

/// One schedule after another: the second begins, at its own step 0, at milestones[0].
///
///     optim::SequentialLR scheduler({optim::LinearLR(optimizer, {.start_factor = 0.1,
///                                                                .total_iters = 5}),
///                                    optim::CosineAnnealingLR(optimizer, {.t_max = 95})}, {5});
///
/// All start from the base rates of the first of them, which is therefore to be made first (as in
/// this list). Steps this scheduler from now on, not its parts.
/// Errors: UsageError unless there is one milestone fewer than parts, in rising order, all parts
/// are
///   of one optimizer, and none has rates of its own (PiecewiseDecay, OneCycleLR, CyclicLR).
/// Source: torch.optim.lr_scheduler 2.x, SequentialLR.
class SequentialLR final : public LRScheduler {
 public:
  SequentialLR(const std::vector<LRScheduler>& schedulers, std::vector<int64_t> milestones);
};

/// All schedules at once: base times the factor of each.
///
///     optim::ChainedScheduler scheduler({optim::ConstantLR(optimizer, {.factor = 0.1}),
///                                        optim::ExponentialLR(optimizer, {.gamma = 0.9})});
///
/// All start from the base rates of the first of them, which is therefore to be made first.
/// Errors: UsageError as SequentialLR, and for a part whose rate is no factor of its base (an
///   eta_min or end_lr above 0): what PyTorch does with these depends on all steps before, so that
///   no run could be resumed from a number.
/// Source: torch.optim.lr_scheduler 2.x, ChainedScheduler.
class ChainedScheduler final : public LRScheduler {
 public:
  explicit ChainedScheduler(const std::vector<LRScheduler>& schedulers);
};

}  // namespace argosy::optim
