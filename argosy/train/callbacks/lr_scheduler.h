#pragma once

#include <string>

#include "argosy/optim/schedule_unit.h"
#include "argosy/train/callback.h"
#include "argosy/train/callbacks/monitor.h"

namespace argosy::train {

struct LRSchedulerOptions {
  /// The figure for an optim::ReduceLROnPlateau: of the evaluation, or of the training without one.
  std::string monitor = "loss";
};

/// Moves a schedule of the learning rate during fit(), for a model that was prepared without one:
///
///     model.fit(train, {.callbacks = {train::LRScheduler(
///         optim::per_epoch(optim::StepLR(optimizer, {.step_size = 30})))}});
///
/// Paddle's LRScheduler(by_step, by_epoch) moves the optimizer's own schedule and leaves the unit
/// to the caller. Here the unit is part of the schedule's type (per_step, per_epoch). `prepare(…,
/// {.schedule = …})` does the same without a callback. A schedule by epoch moves at the end of
/// epochs that were not cut short. Checkpoints keep its state.
/// Errors: UsageError if the model was prepared with a schedule, because both would set the rate,
/// and for a monitor that the training will not have.
class LRScheduler final : public Callback {
 public:
  explicit LRScheduler(optim::ScheduleHandle schedule, LRSchedulerOptions options = {});

  void on_train_begin(const Training& training) override;
  void on_train_batch_end(const Step& step) override;
  void on_epoch_end(const Epoch& epoch) override;

  [[nodiscard]] double last_lr() const { return schedule_.last_lr(); }

  [[nodiscard]] std::string name() const override { return "lr_scheduler"; }
  [[nodiscard]] nlohmann::ordered_json state() const override;
  void load_state(const nlohmann::ordered_json& state) override;

 private:
  [[nodiscard]] detail::Monitor figure() const;

  optim::ScheduleHandle schedule_;
  LRSchedulerOptions options_;
  bool whole_epoch_ = true;
};

}  // namespace argosy::train
