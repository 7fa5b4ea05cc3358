#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "argosy/optim/optimizer.h"

namespace argosy::optim {

/// Learning rate after `step` steps of the scheduler, of a group whose base rate is `base_lr`.
/// A closed form: resuming at any step needs no history.
using LRSchedule = std::function<double(int64_t step, double base_lr)>;

/// Where a scheduler stands.
struct LRSchedulerState {
  int64_t step = 0;
  std::vector<double> base_lrs{};  ///< one per group
};

/// Sets an optimizer's learning rates as training goes on.
///
///     optim::CosineAnnealingLR scheduler(optimizer, {.t_max = epochs});
///     for (…) { train_one_epoch(); scheduler.step(); }
///
/// The unit of a step is the caller's: an epoch or a batch. The base rate of a group is its rate
/// when the scheduler is made, which also sets the rate of step 0. Copies share the optimizer and
/// nothing else. Any closed form is a scheduler: `LRScheduler(optimizer, [](int64_t t, double base)
/// { … })`.
class LRScheduler {
 public:
  LRScheduler(Optimizer optimizer, LRSchedule schedule);

  /// Goes one step on and sets the rates.
  void step();

  /// Rate that was set last, of the first group.
  [[nodiscard]] double last_lr() const { return last_lrs_.front(); }
  [[nodiscard]] const std::vector<double>& last_lrs() const noexcept { return last_lrs_; }
  /// Steps made so far.
  [[nodiscard]] int64_t last_step() const noexcept { return state_.step; }
  [[nodiscard]] const LRSchedule& schedule() const noexcept { return schedule_; }

  [[nodiscard]] const LRSchedulerState& state_dict() const noexcept { return state_; }
  /// Continues from `state` and sets its rates.
  /// Errors: CheckpointError when it has another number of groups or a negative step.
  void load_state_dict(const LRSchedulerState& state);

 protected:
  LRScheduler(Optimizer optimizer, LRSchedule schedule, std::vector<double> base_lrs);
  [[nodiscard]] const Optimizer& optimizer() const noexcept { return optimizer_; }
  friend class LinearWarmup;

 private:
  void apply();

  Optimizer optimizer_;
  LRSchedule schedule_;
  LRSchedulerState state_;
  std::vector<double> last_lrs_;
};

struct ConstantLROptions {
  double factor = 1.0 / 3;  ///< in [0, 1]
  int64_t total_iters = 5;  ///< steps for which the factor holds
};

/// base * factor for the first total_iters steps, base after. Source: torch.optim.lr_scheduler 2.x.
class ConstantLR final : public LRScheduler {
 public:
  explicit ConstantLR(Optimizer optimizer, const ConstantLROptions& options = {});
};

struct StepLROptions {
  int64_t step_size = 30;
  double gamma = 0.1;
};

/// base * gamma^(t / step_size), the quotient rounded down. Source: torch.optim.lr_scheduler 2.x,
/// StepLR._get_closed_form_lr.
class StepLR final : public LRScheduler {
 public:
  StepLR(Optimizer optimizer, const StepLROptions& options);
};

struct CosineAnnealingLROptions {
  int64_t t_max = 0;  ///< steps from base to eta_min; must be given
  double eta_min = 0.0;
};

/// eta_min + (base - eta_min) * (1 + cos(pi t / t_max)) / 2; rises again after t_max.
/// Source: Loshchilov & Hutter, "SGDR", ICLR 2017; torch.optim.lr_scheduler 2.x,
/// CosineAnnealingLR._get_closed_form_lr.
class CosineAnnealingLR final : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer optimizer, const CosineAnnealingLROptions& options);
};

struct LinearWarmupOptions {
  int64_t warmup_steps = 0;  ///< must be given
  double start_factor = 0;   ///< of the base rate, at step 0; reaches 1 at warmup_steps
};

/// Rises from start_factor * base to base in warmup_steps, then goes on with another scheduler,
/// which starts at its own step 0, or stays at base.
///
///     optim::LinearWarmup scheduler(optim::CosineAnnealingLR(optimizer, {.t_max = 90}),
///                                   {.warmup_steps = 10});
///
/// Source: Goyal et al., "Accurate, large minibatch SGD", 2017, section 2.2; Paddle 3.3,
/// paddle/optimizer/lr.py, LinearWarmup with start_lr = start_factor * base and end_lr = base.
class LinearWarmup final : public LRScheduler {
 public:
  LinearWarmup(Optimizer optimizer, const LinearWarmupOptions& options);
  /// Steps this scheduler from now on, not `after`.
  LinearWarmup(const LRScheduler& after, const LinearWarmupOptions& options);
};

}  // namespace argosy::optim
