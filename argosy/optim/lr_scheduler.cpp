#include "argosy/optim/lr_scheduler.h"

#include <cmath>
#include <numbers>

#include "argosy/base/check.h"

namespace argosy::optim {
namespace {

std::vector<double> group_lrs(const Optimizer& optimizer) {
  std::vector<double> lrs;
  for (const GroupInfo& group : optimizer.param_groups()) {
    lrs.push_back(group.lr);
  }
  return lrs;
}

LRSchedule constant(const ConstantLROptions& options) {
  ARGOSY_CHECK(options.factor >= 0 && options.factor <= 1,
               "optim.ConstantLR",
               "factor must be in [0, 1], got {}",
               options.factor);
  ARGOSY_CHECK(options.total_iters >= 0,
               "optim.ConstantLR",
               "total_iters must be >= 0, got {}",
               options.total_iters);
  return [options](int64_t step, double base) {
    return step < options.total_iters ? base * options.factor : base;
  };
}

LRSchedule steps(const StepLROptions& options) {
  ARGOSY_CHECK(
      options.step_size > 0, "optim.StepLR", "step_size must be > 0, got {}", options.step_size);
  return [options](int64_t step, double base) {
    const int64_t steps_down = step / options.step_size;
    return base * std::pow(options.gamma, static_cast<double>(steps_down));
  };
}

LRSchedule cosine(const CosineAnnealingLROptions& options) {
  ARGOSY_CHECK(options.t_max > 0,
               "optim.CosineAnnealingLR",
               "t_max must be > 0, got {}. Give the number of steps from the base rate to eta_min.",
               options.t_max);
  return [options](int64_t step, double base) {
    const double angle =
        std::numbers::pi * static_cast<double>(step) / static_cast<double>(options.t_max);
    return options.eta_min + (base - options.eta_min) * (1 + std::cos(angle)) / 2;
  };
}

LRSchedule warmup(LRSchedule after, const LinearWarmupOptions& options) {
  ARGOSY_CHECK(options.warmup_steps > 0,
               "optim.LinearWarmup",
               "warmup_steps must be > 0, got {}",
               options.warmup_steps);
  ARGOSY_CHECK(options.start_factor >= 0,
               "optim.LinearWarmup",
               "start_factor must be >= 0, got {}",
               options.start_factor);
  return [after = std::move(after), options](int64_t step, double base) {
    if (step >= options.warmup_steps) {
      return after(step - options.warmup_steps, base);
    }
    const double part = static_cast<double>(step) / static_cast<double>(options.warmup_steps);
    return base * (options.start_factor + (1 - options.start_factor) * part);
  };
}

double stay(int64_t /*step*/, double base) {
  return base;
}

}  // namespace

LRScheduler::LRScheduler(Optimizer optimizer, LRSchedule schedule)
    : LRScheduler(optimizer, std::move(schedule), group_lrs(optimizer)) {}

LRScheduler::LRScheduler(Optimizer optimizer, LRSchedule schedule, std::vector<double> base_lrs)
    : optimizer_(std::move(optimizer)), schedule_(std::move(schedule)) {
  ARGOSY_CHECK(schedule_ != nullptr, "optim.LRScheduler", "the schedule is empty");
  state_.base_lrs = std::move(base_lrs);
  apply();
}

void LRScheduler::step() {
  ++state_.step;
  apply();
}

void LRScheduler::load_state_dict(const LRSchedulerState& state) {
  if (state.base_lrs.size() != optimizer_.param_groups().size() || state.step < 0) {
    throw CheckpointError(
        "optim.LRScheduler",
        fmt::format("expected base rates of {} groups and a step >= 0, got {} and step {}",
                    optimizer_.param_groups().size(),
                    state.base_lrs.size(),
                    state.step));
  }
  state_ = state;
  apply();
}

void LRScheduler::apply() {
  for (std::size_t g = state_.base_lrs.size(); g < optimizer_.param_groups().size(); ++g) {
    state_.base_lrs.push_back(optimizer_.param_groups()[g].lr);  // from add_param_group()
  }
  last_lrs_.clear();
  for (std::size_t g = 0; g < state_.base_lrs.size(); ++g) {
    last_lrs_.push_back(schedule_(state_.step, state_.base_lrs[g]));
    optimizer_.set_group_lr(g, last_lrs_.back());
  }
}

ConstantLR::ConstantLR(Optimizer optimizer, const ConstantLROptions& options)
    : LRScheduler(std::move(optimizer), constant(options)) {}

StepLR::StepLR(Optimizer optimizer, const StepLROptions& options)
    : LRScheduler(std::move(optimizer), steps(options)) {}

CosineAnnealingLR::CosineAnnealingLR(Optimizer optimizer, const CosineAnnealingLROptions& options)
    : LRScheduler(std::move(optimizer), cosine(options)) {}

LinearWarmup::LinearWarmup(Optimizer optimizer, const LinearWarmupOptions& options)
    : LRScheduler(std::move(optimizer), warmup(stay, options)) {}

LinearWarmup::LinearWarmup(const LRScheduler& after, const LinearWarmupOptions& options)
    : LRScheduler(
          after.optimizer(), warmup(after.schedule(), options), after.state_dict().base_lrs) {}

}  // namespace argosy::optim
