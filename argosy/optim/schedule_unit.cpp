#include "argosy/optim/schedule_unit.h"

#include "argosy/optim/lr_state.h"

namespace argosy::optim {
namespace {

LRSchedulerState with_unit(LRSchedulerState state, ScheduleUnit unit) {
  state.unit = unit;
  return state;
}

void load(LRScheduler& scheduler, const LRSchedulerState& state, ScheduleUnit unit) {
  check_loadable(state, {.scheduler = scheduler.name(), .unit = unit}, scheduler.optimizer());
  scheduler.load_state_dict(state);
}

}  // namespace

LRSchedulerState StepScheduler::state_dict() const {
  return with_unit(scheduler_.state_dict(), unit());
}

void StepScheduler::load_state_dict(const LRSchedulerState& state) {
  load(scheduler_, state, unit());
}

LRSchedulerState EpochScheduler::state_dict() const {
  return with_unit(scheduler_.state_dict(), unit());
}

void EpochScheduler::load_state_dict(const LRSchedulerState& state) {
  load(scheduler_, state, unit());
}

ScheduleHandle::ScheduleHandle(StepScheduler schedule) : schedule_(std::move(schedule)) {}
ScheduleHandle::ScheduleHandle(EpochScheduler schedule) : schedule_(std::move(schedule)) {}
ScheduleHandle::ScheduleHandle(ReduceLROnPlateau schedule) : schedule_(std::move(schedule)) {}

ScheduleUnit ScheduleHandle::unit() const noexcept {
  return std::visit([](const auto& schedule) { return schedule.unit(); }, schedule_);
}

void ScheduleHandle::on_step() {
  if (auto* const schedule = std::get_if<StepScheduler>(&schedule_)) {
    schedule->on_step();
  }
}

void ScheduleHandle::on_epoch_end() {
  if (auto* const schedule = std::get_if<EpochScheduler>(&schedule_)) {
    schedule->on_epoch_end();
  }
}

void ScheduleHandle::on_metric(double metric) {
  if (auto* const schedule = std::get_if<ReduceLROnPlateau>(&schedule_)) {
    schedule->on_metric(metric);
  }
}

double ScheduleHandle::last_lr() const {
  return std::visit([](const auto& schedule) { return schedule.last_lr(); }, schedule_);
}

std::string ScheduleHandle::parameters() const {
  return std::visit([](const auto& schedule) { return schedule.parameters(); }, schedule_);
}

LRSchedulerState ScheduleHandle::state_dict() const {
  return std::visit([](const auto& schedule) { return schedule.state_dict(); }, schedule_);
}

void ScheduleHandle::load_state_dict(const LRSchedulerState& state) {
  std::visit([&](auto& schedule) { schedule.load_state_dict(state); }, schedule_);
}

}  // namespace argosy::optim
