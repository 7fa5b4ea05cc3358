#include "argosy/train/fit_loop.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/nn/module.h>

#include "argosy/base/log.h"
#include "argosy/os/signals.h"
#include "argosy/train/callbacks/progress_bar.h"
#include "argosy/train/callbacks/run_recorder.h"
#include "argosy/train/model.h"

namespace argosy::train::detail {
namespace {

const char* unit_in_words(optim::ScheduleUnit unit) {
  switch (unit) {
    case optim::ScheduleUnit::kStep:
      return "update";
    case optim::ScheduleUnit::kEpoch:
      return "epoch";
    case optim::ScheduleUnit::kMetric:
      return "evaluation";
    case optim::ScheduleUnit::kUnset:
      break;
  }
  return "";
}

}  // namespace

FitLoop::FitLoop(Core& core, Model& model, Feed& train, Feed* eval, const FitOptions& options)
    : core_(core),
      model_(model),
      train_(&train),
      eval_(eval),
      options_(options),
      begun_step_(core.steps),
      batch_size_(options.batch_size) {
  if (options.verbose > 0) {
    callbacks_.emplace_back(ProgressBar());
  }
  callbacks_.insert(callbacks_.end(), options.callbacks.begin(), options.callbacks.end());
  add_checkpoints();
  watching_ = options.callbacks;
  if (!options.run_dir.empty()) {  // the last: the others have ended when it says that all has
    watching_.emplace_back(std::make_shared<RunRecorder>(options.run_dir));
    callbacks_.push_back(watching_.back());
  }
}

History FitLoop::run() {
  try {
    return train_all();
  } catch (const std::exception& error) {
    tell_exception(error.what());
    throw;
  }
}

void FitLoop::tell_exception(const std::string& what) {
  for (const AnyCallback& callback : callbacks_) {
    try {
      callback->on_exception(training(), what);
    } catch (const std::exception& error) {
      log::error("[train.fit] a callback's on_exception(): {}", error.what());
    }
  }
}

History FitLoop::train_all() {
  core_.requests = {};
  forget_update();
  if (core_.schedule.has_value() && core_.schedule->unit() == optim::ScheduleUnit::kMetric) {
    schedules_figure().check(training());
  }
  const bool goes_on = options_.resume != Resume::kNever;
  lock_.emplace(std::vector{options_.run_dir, checkpoint_folder(options_)},
                core_.group,
                goes_on ? FolderLock::kPatience : FolderLock::kPatience.zero());
  if (options_.on_signal != OnSignal::kIgnore && keeps_checkpoints()) {
    signals_.emplace({SIGINT, SIGTERM, SIGUSR1});
  }
  resume();
  batches_ = feed().batches();
  core_.network.module->train();
  all(&Callback::on_train_begin, training());
  for (; !done(); ++epoch_) {
    run_epoch();
  }
  history_.steps = core_.steps;
  Training end = training();
  end.history = &history_;
  all(&Callback::on_train_end, end);
  return std::move(history_);
}

/// That an exception ended: no gradient of it enters the next one.
void FitLoop::forget_update() {
  if (core_.optimizer->impl()->stepped_early()) {  // backward has made it on all ranks
    core_.optimizer->step();
  }
  core_.optimizer->zero_grad();
}

Training FitLoop::training() const {
  return {.model = model_,
          .epochs = options_.epochs,
          .batches = batches_,
          .batch_size = batch_size_ * core_.group.size() * options_.accumulate_grad_batches,
          .samples = train_->samples(),
          .verbose = options_.verbose,
          .log_freq = options_.log_freq,
          .run_dir = options_.run_dir,
          .evaluates = eval_ != nullptr,
          .scales = core_.precision.scales(),
          .resumed = resumed_,
          .done = done(),
          .epoch = epoch_,
          .step = core_.steps,
          .options = &options_,
          .loss = core_.loss->name(),
          .metrics = core_.metric_names(),
          .amp = core_.precision.name(),
          .schedule = core_.schedule.has_value() ? core_.schedule->state_dict().scheduler : "",
          .schedule_parameters = core_.schedule.has_value() ? core_.schedule->parameters() : "",
          .schedule_unit = core_.schedule.has_value() ? unit_in_words(core_.schedule->unit()) : "",
          .base_lr = core_.schedule.has_value() ? core_.schedule->state_dict().base_lrs.front()
                                                : core_.optimizer->lr(),
          .class_names = class_names()};
}

std::vector<std::string> FitLoop::class_names() const {
  if (!options_.class_names.empty()) {
    return options_.class_names;
  }
  std::vector<std::string> names;
  if (eval_ != nullptr) {
    names = eval_->class_names();
  }
  return names.empty() ? train_->class_names() : names;
}

Epoch FitLoop::epoch_now(const Logs& logs) const {
  return {.model = model_,
          .epoch = epoch_,
          .epochs = options_.epochs,
          .step = core_.steps,
          .evaluates = eval_ != nullptr,
          .seconds = std::chrono::duration<double>(Clock::now() - epoch_begun_).count(),
          .logs = logs,
          .loader = feed().stats()};
}

Step FitLoop::step_now(const Logs& logs) const {
  return {.model = model_,
          .epoch = epoch_,
          .batch = batch_,
          .batches = batches_,
          .step = core_.steps,
          .updates = updates_,
          .skipped = core_.precision.skipped(),
          .samples = samples_,
          .loss = loss_,
          .lr = core_.optimizer->lr(),
          .logs = logs,
          .inputs = inputs_};
}

void FitLoop::together_with_ranks(const std::function<void()>& work) {
  core_.group.size() > 1 ? phases_.time(PhaseKind::kAgree, work) : work();
}

void FitLoop::run_epoch() {
  epoch_begun_ = Clock::now();
  const Logs none;
  feed().set_epoch(epoch_);
  batches_ = feed().batches();
  if (!in_epoch_) {
    batch_ = update_begun_ = 0;
    epoch_loss_ = {};
    core_.reset_metrics();
    legs_.clear();
    epoch_done_ = false;
    if (train_->dealing().has_value()) {
      legs_.push_back({.ranks = core_.group.size(), .batch_size = batch_size_});
    }
  }
  in_epoch_ = false;
  all(&Callback::on_epoch_begin, epoch_now(none));
  if (!epoch_done_) {
    run_batches();
  }
  if (!preempted_) {
    finish_epoch();
  }
  rest_.reset();
}

void FitLoop::run_batches() {
  Tensors batch;
  const auto next = [&] { return feed().next(batch); };
  while (!ended_ && phases_.time(PhaseKind::kDataWait, next)) {
    run_batch(batch);
    ++batch_;
    if (updates_) {
      update_begun_ = batch_;
      offer_save_point(false, Logs());
    }
  }
  feed().leave();
}

void FitLoop::finish_epoch() {
  const bool complete = !ended_;
  Logs logs{{"loss", epoch_loss_.compute(core_.group)}};
  logs.add(core_.training_values());
  if (eval_ != nullptr && (complete || stop_after_epoch_) &&
      ((epoch_ + 1) % options_.eval_freq == 0 || epoch_ + 1 == options_.epochs)) {
    if (!phases_.time(PhaseKind::kEvaluation, [&] { return evaluate_now(logs); })) {
      offer_save_point(false, Logs());  // whoever goes on from it evaluates from the beginning
      return;
    }
  }
  if (complete) {
    move_schedule(logs);
  }
  all(&Callback::on_epoch_end, epoch_now(logs));
  history_.epochs.push_back(logs);
  agree_at_epoch_end();
  if (complete) {
    offer_save_point(true, logs);
  }
}

Monitor FitLoop::schedules_figure() const {
  return {core_.monitor, MonitorMode::kAuto, 0};
}

void FitLoop::move_schedule(const Logs& logs) {
  if (!core_.schedule.has_value()) {
    return;
  }
  core_.schedule->on_epoch_end();
  if (core_.schedule->unit() != optim::ScheduleUnit::kMetric) {
    return;
  }
  if (const auto value = schedules_figure().of_epoch(logs, eval_ != nullptr)) {
    core_.schedule->on_metric(*value);
  }
}

/// How many batches the update has that this one belongs to: fewer at the end of an epoch.
int64_t FitLoop::batches_of_update() const {
  const int64_t wanted = options_.accumulate_grad_batches;
  if (wanted == 1) {
    return 1;
  }
  return std::min(wanted, *batches_ - update_begun_);
}

void FitLoop::run_batch(const Tensors& batch) {
  const Logs none;
  const int64_t together = batches_of_update();
  inputs_ = core_.inputs_of(batch, "train.fit");
  updates_ = batch_ - update_begun_ == together - 1;
  core_.precision.forget_update();
  all(&Callback::on_train_batch_begin, step_now(none));
  double lr = core_.optimizer->lr();  // the update's; the schedule moves on before its end is told
  const auto pass = [&] { forward_backward(batch, together); };
  if (updates_) {
    pass();
    phases_.tell_communication(core_.network.communication_times());
    together_with_ranks([&] { agree(); });
    if (core_.precision.scales()) {
      phases_.time(PhaseKind::kUpdate, [&] { core_.precision.begin_update(*core_.optimizer); });
    }
    all(&Callback::on_before_update, step_now(none));
    lr = core_.optimizer->lr();
    phases_.time(PhaseKind::kUpdate, [&] { core_.step(); });
    core_.stepped();
  } else {
    core_.network.without_sync(pass);
  }
  const bool shown =
      (batch_ + 1) % options_.log_freq == 0 || (batches_.has_value() && batch_ + 1 == *batches_);
  Logs logs;
  if (shown) {
    together_with_ranks([&] { logs = core_.training_values(); });
  }
  Step end = step_now(logs);
  end.lr = lr;
  all(&Callback::on_train_batch_end, end);
  inputs_.clear();
  if (updates_) {
    ended_ = ended_ ||
             (options_.num_iters.has_value() && core_.steps - begun_step_ >= *options_.num_iters);
  }
}

void FitLoop::forward_backward(const Tensors& batch, int64_t together) {
  const Tensors labels = core_.labels_of(batch, "train.fit");
  Tensors outputs;
  const LossValue loss = phases_.time(PhaseKind::kForward, [&] {
    outputs = core_.forward(inputs_);
    return core_.loss_of(outputs, labels);
  });
  phases_.time(PhaseKind::kBackward, [&] {
    core_.precision.backward(together == 1 ? loss.mean : loss.mean / static_cast<double>(together));
  });
  const auto value = loss.mean.item<double>();
  epoch_loss_.update(value, loss.count);
  if (loss.count > 0) {
    own_loss_ += value * loss.count;
    own_count_ += loss.count;
  }
  own_samples_ += samples_in(batch);
  core_.update_metrics(outputs, labels);
}

}  // namespace argosy::train::detail
