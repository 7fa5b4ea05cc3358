#include "argosy/optim/lr_state.h"

#include <algorithm>
#include <cmath>

#include "argosy/base/check.h"

namespace argosy::optim {
namespace {

bool are_rates(const std::vector<double>& lrs) {
  return std::ranges::all_of(lrs, [](double lr) { return std::isfinite(lr) && lr >= 0; });
}

}  // namespace

const char* name_of(ScheduleUnit unit) {
  switch (unit) {
    case ScheduleUnit::kStep:
      return "step";
    case ScheduleUnit::kEpoch:
      return "epoch";
    case ScheduleUnit::kMetric:
      return "metric";
    case ScheduleUnit::kUnset:
      break;
  }
  return "";
}

void check_loadable(const LRSchedulerState& state,
                    const LRSchedulerState& own,
                    const Optimizer& optimizer) {
  if (!state.scheduler.empty() && !own.scheduler.empty() && state.scheduler != own.scheduler) {
    throw CheckpointError("optim.LRScheduler",
                          fmt::format("expected the state of {}, got that of {}. Make the "
                                      "schedule that was saved, or clear .scheduler to go on from "
                                      "its step with another",
                                      own.scheduler,
                                      state.scheduler));
  }
  if (state.unit != ScheduleUnit::kUnset && own.unit != ScheduleUnit::kUnset &&
      state.unit != own.unit) {
    throw CheckpointError("optim.LRScheduler",
                          fmt::format("{}: expected a state counted per {}, got one per {}",
                                      own.scheduler,
                                      name_of(own.unit),
                                      name_of(state.unit)));
  }
  const std::size_t groups = optimizer.param_groups().size();
  if (state.base_lrs.size() != groups || state.step < 0 || !are_rates(state.base_lrs)) {
    throw CheckpointError(
        "optim.LRScheduler",
        fmt::format("expected base rates of {} groups and a step >= 0, got {} and step {}",
                    groups,
                    state.base_lrs.size(),
                    state.step));
  }
  if (!state.last_lrs.empty() && (state.last_lrs.size() != groups || !are_rates(state.last_lrs))) {
    throw CheckpointError(
        "optim.LRScheduler",
        fmt::format("expected rates of {} groups, got {}", groups, state.last_lrs.size()));
  }
}

}  // namespace argosy::optim
