#include "argosy/train/callbacks/lr_scheduler.h"

#include <utility>

#include "argosy/base/check.h"
#include "argosy/checkpoint/states.h"
#include "argosy/train/model.h"

#include <nlohmann/json.hpp>

namespace argosy::train {

LRScheduler::LRScheduler(optim::ScheduleHandle schedule, LRSchedulerOptions options)
    : schedule_(std::move(schedule)), options_(std::move(options)) {}

detail::Monitor LRScheduler::figure() const {
  return {options_.monitor, MonitorMode::kAuto, 0};
}

void LRScheduler::on_train_begin(const Training& training) {
  ARGOSY_CHECK(training.schedule.empty(),
               "train.LRScheduler",
               "the model was prepared with a schedule already ({}), which fit() moves on by "
               "itself: leave this callback out, or that schedule",
               training.schedule);
  if (schedule_.unit() == optim::ScheduleUnit::kMetric) {
    figure().check(training);
  }
}

void LRScheduler::on_train_batch_end(const Step& step) {
  whole_epoch_ = !step.batches.has_value() || step.batch + 1 == *step.batches;
  if (step.updates && !step.skipped) {
    schedule_.on_step();
  }
}

void LRScheduler::on_epoch_end(const Epoch& epoch) {
  if (!whole_epoch_) {
    return;
  }
  schedule_.on_epoch_end();
  if (schedule_.unit() != optim::ScheduleUnit::kMetric) {
    return;
  }
  if (const auto value = figure().of_epoch(epoch.logs, epoch.evaluates)) {
    schedule_.on_metric(*value);
  }
}

nlohmann::ordered_json LRScheduler::state() const {
  return checkpoint::to_json(schedule_.state_dict());
}

void LRScheduler::load_state(const nlohmann::ordered_json& state) {
  schedule_.load_state_dict(checkpoint::schedule_state(state));
}

}  // namespace argosy::train
