#include "argosy/optim/lr_scheduler.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "argosy/base/check.h"
#include "argosy/optim/lr_state.h"

namespace argosy::optim {
namespace {

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
    : LRScheduler("LRScheduler", std::move(optimizer), std::move(schedule)) {}

LRScheduler::LRScheduler(std::string name, Optimizer optimizer, LRSchedule schedule)
    : optimizer_(std::move(optimizer)), schedule_(std::move(schedule)) {
  ARGOSY_CHECK(schedule_ != nullptr, "optim.LRScheduler", "the schedule is empty");
  apply({.scheduler = std::move(name)});
}

LRScheduler::LRScheduler(std::string name,
                         Optimizer optimizer,
                         LRSchedule schedule,
                         double own_base)
    : optimizer_(std::move(optimizer)), schedule_(std::move(schedule)), own_base_(own_base) {
  apply({.scheduler = std::move(name)});
}

LRScheduler::LRScheduler(std::string name, const LRScheduler& like, LRSchedule schedule)
    : optimizer_(like.optimizer_), schedule_(std::move(schedule)), own_base_(like.own_base_) {
  apply({.base_lrs = like.state_.base_lrs, .scheduler = std::move(name)});
}

void LRScheduler::step() {
  LRSchedulerState next = state_;
  ++next.step;
  apply(std::move(next));
}

void LRScheduler::load_state_dict(const LRSchedulerState& state) {
  check_loadable(state, {.scheduler = state_.scheduler}, optimizer_);
  LRSchedulerState next = state;
  next.scheduler = state_.scheduler;
  next.unit = ScheduleUnit::kUnset;
  apply(std::move(next));
}

// All or nothing: a schedule may end, or give a rate that no optimizer takes.
void LRScheduler::apply(LRSchedulerState state) {
  const std::vector<GroupInfo>& groups = optimizer_.param_groups();
  for (std::size_t g = state.base_lrs.size(); g < groups.size(); ++g) {  // add_param_group()
    state.base_lrs.push_back(own_base_ ? *own_base_ * groups[g].lr_scale : groups[g].lr);
  }
  std::vector<double> lrs;
  for (const double base : state.base_lrs) {
    lrs.push_back(schedule_(state.step, base));
    ARGOSY_CHECK(std::isfinite(lrs.back()) && lrs.back() >= 0,
                 "optim.LRScheduler",
                 "{}: the rate of step {} must be a number >= 0, got {}",
                 state.scheduler,
                 state.step,
                 lrs.back());
  }
  for (std::size_t g = 0; g < lrs.size(); ++g) {
    optimizer_.set_group_lr(g, lrs[g]);
  }
  state_ = std::move(state);
  last_lrs_ = std::move(lrs);
}

ConstantLR::ConstantLR(Optimizer optimizer, const ConstantLROptions& options)
    : LRScheduler("ConstantLR", std::move(optimizer), constant(options)) {
  set_parameters(fmt::format("factor={}, total_iters={}", options.factor, options.total_iters));
}

StepLR::StepLR(Optimizer optimizer, const StepLROptions& options)
    : LRScheduler("StepLR", std::move(optimizer), steps(options)) {
  set_parameters(fmt::format("step_size={}, gamma={}", options.step_size, options.gamma));
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer optimizer, const CosineAnnealingLROptions& options)
    : LRScheduler("CosineAnnealingLR", std::move(optimizer), cosine(options)) {
  set_parameters(fmt::format("t_max={}, eta_min={}", options.t_max, options.eta_min));
}

LinearWarmup::LinearWarmup(Optimizer optimizer, const LinearWarmupOptions& options)
    : LRScheduler("LinearWarmup", std::move(optimizer), warmup(stay, options)) {
  set_parameters(
      fmt::format("warmup_steps={}, start_factor={}", options.warmup_steps, options.start_factor));
}

LinearWarmup::LinearWarmup(const LRScheduler& after, const LinearWarmupOptions& options)
    : LRScheduler("LinearWarmup", after, warmup(after.schedule(), options)) {
  set_parameters(fmt::format("warmup_steps={}, start_factor={}, then {}({})",
                             options.warmup_steps,
                             options.start_factor,
                             after.name(),
                             after.parameters()));
}

}  // namespace argosy::optim
