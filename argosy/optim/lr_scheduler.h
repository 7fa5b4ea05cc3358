#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "argosy/optim/optimizer.h"

namespace argosy::optim {

/// Returns the learning rate after `step` steps of the scheduler, for a group with the base rate
/// `base_lr`. It is a closed form, so resuming at any step needs no history.
using LRSchedule = std::function<double(int64_t step, double base_lr)>;

/// The unit of a schedule's step. Checkpoints hold these numbers.
enum class ScheduleUnit : int64_t {
  kUnset = 0,   ///< the caller's own loop decides
  kStep = 1,    ///< an update of the parameters
  kEpoch = 2,   ///< a pass over the training data
  kMetric = 3,  ///< an evaluation, whose result the schedule uses
};

/// The state of any scheduler: finite numbers and a name, so that a checkpoint can store it. Fields
/// that a scheduler does not use keep these defaults.
struct LRSchedulerState {
  int64_t step = 0;
  std::vector<double> base_lrs{};            ///< one per group
  std::string scheduler{};                   ///< "StepLR"; empty fits any
  ScheduleUnit unit = ScheduleUnit::kUnset;  ///< kUnset fits any
  // Of ReduceLROnPlateau:
  std::vector<double> last_lrs{};  ///< current rates, one per group
  std::optional<double> best{};    ///< best metric so far; never an infinity
  int64_t num_bad_epochs = 0;
  int64_t cooldown_counter = 0;
};

/// Sets an optimizer's learning rates during training.
///
///     optim::CosineAnnealingLR scheduler(optimizer, {.t_max = epochs});
///     for (…) { train_one_epoch(); scheduler.step(); }
///
/// The caller decides whether a step is an epoch or a batch; per_epoch() and per_step()
/// (schedule_unit.h) make it part of the type. The base rate of a group is its rate when the
/// scheduler is made. Making it also sets the rate of step 0. Schedules with rates of their own
/// (PiecewiseDecay, OneCycleLR, CyclicLR) multiply them by each group's lr_scale. Copies share only
/// the optimizer. Any closed form is a scheduler: `LRScheduler(optimizer, [](int64_t t, double
/// base) { … })`.
class LRScheduler {
 public:
  LRScheduler(Optimizer optimizer, LRSchedule schedule);

  /// Moves one step forward and sets the rates.
  /// Errors: UsageError beyond the end of a schedule that has one (OneCycleLR); then nothing
  /// changes.
  void step();

  /// The last rate that was set for the first group.
  [[nodiscard]] double last_lr() const { return last_lrs_.front(); }
  [[nodiscard]] const std::vector<double>& last_lrs() const noexcept { return last_lrs_; }
  /// Steps made so far.
  [[nodiscard]] int64_t last_step() const noexcept { return state_.step; }
  [[nodiscard]] const LRSchedule& schedule() const noexcept { return schedule_; }
  /// "StepLR".
  [[nodiscard]] const std::string& name() const noexcept { return state_.scheduler; }
  /// Its options, for records of a run: "step_size=30, gamma=0.1". Empty for a schedule that is a
  /// function.
  [[nodiscard]] const std::string& parameters() const noexcept { return parameters_; }
  [[nodiscard]] const Optimizer& optimizer() const noexcept { return optimizer_; }

  [[nodiscard]] const LRSchedulerState& state_dict() const noexcept { return state_; }
  /// Continues from `state` and sets its rates.
  /// Errors: CheckpointError if it has another number of groups, a negative step, or belongs to
  /// another scheduler.
  void load_state_dict(const LRSchedulerState& state);

 protected:
  LRScheduler(std::string name, Optimizer optimizer, LRSchedule schedule);
  /// For a schedule with its own rates: `own_base` replaces the optimizer's.
  LRScheduler(std::string name, Optimizer optimizer, LRSchedule schedule, double own_base);
  /// Takes the base rates of `like`.
  LRScheduler(std::string name, const LRScheduler& like, LRSchedule schedule);
  void set_parameters(std::string parameters) { parameters_ = std::move(parameters); }
  /// Returns the part whose base rates a scheduler of several parts starts from.
  /// Errors: UsageError `[where] …` for no parts, for parts of several optimizers, or for parts
  /// with their own rates.
  [[nodiscard]] static const LRScheduler& first_of(const char* where,
                                                   const std::vector<LRScheduler>& schedulers);

 private:
  void apply(LRSchedulerState state);

  Optimizer optimizer_;
  LRSchedule schedule_;
  std::optional<double> own_base_{};
  LRSchedulerState state_{};
  std::vector<double> last_lrs_{};
  std::string parameters_{};
};

struct ConstantLROptions {
  double factor = 1.0 / 3;  ///< in [0, 1]
  int64_t total_iters = 5;  ///< steps for which the factor holds
};

/// base * factor for the first total_iters steps, then base. Source: torch.optim.lr_scheduler 2.x.
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
  int64_t t_max = 0;  ///< required: steps from base to eta_min
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
  int64_t warmup_steps = 0;  ///< required
  double start_factor = 0;   ///< factor of the base rate at step 0; reaches 1 at warmup_steps
};

/// Rises from start_factor * base to base in warmup_steps. Then it stays at base, or continues with
/// another scheduler, which starts at its own step 0.
///
///     optim::LinearWarmup scheduler(optim::CosineAnnealingLR(optimizer, {.t_max = 90}),
///                                   {.warmup_steps = 10});
///
/// Source: Goyal et al., "Accurate, large minibatch SGD", 2017, section 2.2; Paddle 3.3,
/// paddle/optimizer/lr.py, LinearWarmup with start_lr = start_factor * base and end_lr = base.
class LinearWarmup final : public LRScheduler {
 public:
  LinearWarmup(Optimizer optimizer, const LinearWarmupOptions& options);
  /// From now on step this scheduler, not `after`.
  LinearWarmup(const LRScheduler& after, const LinearWarmupOptions& options);
};

}  // namespace argosy::optim
