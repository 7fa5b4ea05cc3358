#pragma once

#include "argosy/optim/lr_scheduler.h"

// Internal to the room.
namespace argosy::optim {

/// "epoch", "step", "metric"; "" for kUnset.
[[nodiscard]] const char* name_of(ScheduleUnit unit);

/// Errors: CheckpointError unless `state` has the scheduler and the unit of `own` (where both name
/// one), a base rate for each of the optimizer's groups and a step >= 0.
void check_loadable(const LRSchedulerState& state,
                    const LRSchedulerState& own,
                    const Optimizer& optimizer);

}  // namespace argosy::optim
