#include "argosy/optim/lr_plateau.h"

#include <algorithm>
#include <cmath>

#include "argosy/base/check.h"
#include "argosy/optim/lr_state.h"

namespace argosy::optim {
namespace {

std::vector<double> group_lrs(const Optimizer& optimizer) {
  std::vector<double> lrs;
  for (const GroupInfo& group : optimizer.param_groups()) {
    lrs.push_back(group.lr);
  }
  return lrs;
}

void check(const ReduceLROnPlateauOptions& options) {
  ARGOSY_CHECK(options.factor > 0 && options.factor < 1,
               "optim.ReduceLROnPlateau",
               "factor must be in (0, 1), got {}",
               options.factor);
  ARGOSY_CHECK(options.patience >= 0 && options.cooldown >= 0,
               "optim.ReduceLROnPlateau",
               "patience and cooldown must be >= 0, got {} and {}",
               options.patience,
               options.cooldown);
  ARGOSY_CHECK(options.threshold >= 0 && options.min_lr >= 0 && options.eps >= 0,
               "optim.ReduceLROnPlateau",
               "threshold, min_lr and eps must be >= 0, got {}, {} and {}",
               options.threshold,
               options.min_lr,
               options.eps);
}

}  // namespace

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer optimizer, const ReduceLROnPlateauOptions& options)
    : optimizer_(std::move(optimizer)), options_(options) {
  check(options_);
  state_.scheduler = "ReduceLROnPlateau";
  state_.unit = ScheduleUnit::kMetric;
  state_.base_lrs = group_lrs(optimizer_);
}

void ReduceLROnPlateau::step(double metric) {
  ++state_.step;
  const bool cooling = state_.cooldown_counter > 0;
  if (cooling) {
    --state_.cooldown_counter;
  }
  if (cooling && options_.during_cooldown == DuringCooldown::kLooksAway) {
    return;
  }
  if (is_better(metric)) {
    state_.best = metric;
    state_.num_bad_epochs = 0;
  } else {
    ++state_.num_bad_epochs;
  }
  if (cooling) {
    state_.num_bad_epochs = 0;
  }
  if (state_.num_bad_epochs > options_.patience) {
    reduce();
    state_.cooldown_counter = options_.cooldown;
    state_.num_bad_epochs = 0;
  }
}

// An infinity on the good side is not remembered: nothing could ever be better, and no text holds
// it.
bool ReduceLROnPlateau::is_better(double metric) const {
  if (!std::isfinite(metric)) {
    return false;
  }
  if (!state_.best) {
    return true;
  }
  const double best = *state_.best;
  const bool relative = options_.threshold_mode == ThresholdMode::kRel;
  if (options_.mode == PlateauMode::kMin) {
    return metric < (relative ? best * (1 - options_.threshold) : best - options_.threshold);
  }
  return metric > (relative ? best * (1 + options_.threshold) : best + options_.threshold);
}

void ReduceLROnPlateau::reduce() {
  for (std::size_t g = 0; g < optimizer_.param_groups().size(); ++g) {
    const double old = optimizer_.param_groups()[g].lr;
    const double reduced = std::max(old * options_.factor, options_.min_lr);
    if (old - reduced > options_.eps) {
      optimizer_.set_group_lr(g, reduced);
    }
  }
}

std::string ReduceLROnPlateau::parameters() const {
  return fmt::format("mode={}, factor={}, patience={}, threshold={}, cooldown={}, min_lr={}",
                     options_.mode == PlateauMode::kMin ? "min" : "max",
                     options_.factor,
                     options_.patience,
                     options_.threshold,
                     options_.cooldown,
                     options_.min_lr);
}

LRSchedulerState ReduceLROnPlateau::state_dict() const {
  LRSchedulerState state = state_;
  state.last_lrs = group_lrs(optimizer_);
  for (std::size_t g = state.base_lrs.size(); g < state.last_lrs.size(); ++g) {
    state.base_lrs.push_back(state.last_lrs[g]);  // from add_param_group()
  }
  return state;
}

void ReduceLROnPlateau::load_state_dict(const LRSchedulerState& state) {
  check_loadable(state, state_, optimizer_);
  if (state.last_lrs.empty() || state.num_bad_epochs < 0 || state.cooldown_counter < 0 ||
      (state.best && !std::isfinite(*state.best))) {
    throw CheckpointError("optim.ReduceLROnPlateau",
                          "expected the rates, a finite best metric and counters >= 0, got a state "
                          "without. It is not of a ReduceLROnPlateau, or damaged");
  }
  state_ = state;
  state_.scheduler = "ReduceLROnPlateau";
  state_.unit = ScheduleUnit::kMetric;
  for (std::size_t g = 0; g < state.last_lrs.size(); ++g) {
    optimizer_.set_group_lr(g, state.last_lrs[g]);
  }
}

}  // namespace argosy::optim
