#include "argosy/train/fit_loop.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/nn/module.h>

#include "argosy/checkpoint/together.h"
#include "argosy/data/random.h"
#include "argosy/engine/cpu.h"
#include "argosy/engine/random_state.h"
#include "argosy/engine/seed.h"
#include "argosy/train/epoch_sums.h"
#include "argosy/train/evaluate.h"
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

FitLoop::FitLoop(
    Core& core, Model& model, Feed& train, Feed* eval, const FitOptions& options, FitStart& start)
    : core_(core),
      model_(model),
      eval_(eval),
      options_(options),
      start_(start),
      announcer_(options, core.steps),
      agreement_(core.requests, core.group),
      feed_(train, options, core.group),
      pass_(core, model, options, agreement_, announcer_.phases()),
      place_(core.steps) {}

History FitLoop::run() {
  try {
    return train_all();
  } catch (const std::exception& error) {
    announcer_.exception(training(), error.what());
    throw;
  }
}

History FitLoop::train_all() {
  forget_update();
  core_.optimizer->use_shared_weights(false);  // of the end of an earlier fit()
  seed_ = fleet::detail::seed_of_job();
  if (core_.watches_a_figure()) {
    schedules_figure().check(training());
  }
  lock_folders(start_, options_, core_.group);
  if (options_.checkpoint.on_signal != OnSignal::kIgnore && announcer_.keeps_checkpoints()) {
    agreement_.heed_signals();
  }
  resume();
  batches_ = feed_.now().batches();
  core_.network.module->train();
  announcer_.all(&Callback::on_train_begin, training());
  for (; !done(); place_.epoch_done()) {
    run_epoch();
  }
  if (!agreement_.preempted()) {
    core_.optimizer->use_shared_weights(true);
  }
  history_.steps = core_.steps;
  agreement_.put(history_);
  Training end = training();
  end.history = &history_;
  announcer_.all(&Callback::on_train_end, end);
  return std::move(history_);
}

/// An exception may have ended the update before: none of its gradients enters the next one.
void FitLoop::forget_update() {
  if (core_.optimizer->impl()->stepped_early()) {  // backward has made it on all ranks
    core_.optimizer->step();
  }
  core_.optimizer->zero_grad();
}

void FitLoop::resume() {
  const std::optional<std::string>& path = start_.checkpoint;
  if (!path.has_value()) {
    return;
  }
  const Share share = read_together(*path, core_.group);
  restore(core_, share.snapshot, *path);
  check_schedule(core_, share.snapshot, *path);
  continue_from(share, *path);
  checkpoint::together(core_.group, "train.resume", *path, [&] {
    restore_callbacks(share.snapshot, *path, announcer_.callbacks());
  });
  resumed_ = true;
  if (options_.log.verbose > 0 && core_.group.rank() == 0) {
    if (done()) {
      fmt::print("Resuming from {}: nothing is left to do after step {}\n", *path, core_.steps);
    } else {
      fmt::print("Resuming from {}: epoch {}, batch {}, step {}\n",
                 *path,
                 place_.epoch() + 1,
                 place_.batch(),
                 core_.steps);
    }
    std::fflush(stdout);
  }
}

void FitLoop::continue_from(const Share& share, const std::string& path) {
  const checkpoint::Snapshot& snapshot = share.snapshot;
  const std::optional<Place> place = place_in(snapshot);
  if (!place.has_value()) {
    throw CheckpointError("train.resume",
                          "Model::save() wrote it: it has weights and the optimizer's state, and "
                          "no place in a training to go on from. Model::load() takes it",
                          {.path = path});
  }
  begun_from_ =
      options_.checkpoint.resume_from.empty() ? place->begun_from : options_.checkpoint.resume_from;
  core_.requests = requests_in(snapshot, share.gone);
  seed_ = place->seed.value_or(seed_);
  agreement_.load(*place);
  const bool same_leg = feed_.resume(*place, snapshot);
  place_.load(*place, same_leg ? std::vector<Leg>() : feed_.new_legs());
  end_at_num_iters();
  if (place->in_epoch()) {
    restore_epoch_sums(*place, share);
  }
  restore_rank(core_, snapshot, *place);
  if (core_.group.rank() >= place->ranks) {  // ranks that were not there draw numbers of their own
    seed_everything(options_.data.seed + static_cast<uint64_t>(core_.steps), core_.group.rank());
  }
}

/// Ranks take over the sums of those that are gone; ranks that were not there have counted nothing
/// yet.
void FitLoop::restore_epoch_sums(const Place& place, const Share& share) {
  pass_.figures() = {};
  core_.reset_metrics();
  if (core_.group.rank() < place.ranks) {
    restore_sums(core_, pass_.figures(), share.snapshot.rank_values, share.gone);
  }
  reset_others(core_, core_.group.size() < place.ranks);
}

void FitLoop::run_epoch() {
  epoch_begun_ = Clock::now();
  feed_.now().set_epoch(place_.epoch());
  batches_ = feed_.now().batches();
  if (place_.begin_epoch(feed_.new_legs())) {
    pass_.figures() = {};
    core_.reset_metrics();
  }
  announcer_.all(&Callback::on_epoch_begin, epoch_now({}));
  if (!place_.batches_done()) {
    run_batches();
  }
  if (!agreement_.preempted()) {
    finish_epoch();
  }
  feed_.end_epoch();
}

void FitLoop::run_batches() {
  Tensors batch;
  feed_.now().set_device(core_.device());
  const auto next = [&] { return feed_.now().next(batch); };
  turns_.emplace(feed_.turns(), place_.epoch(), data::mix(seed_, feed_.earlier_legs()));
  while (!agreement_.ended() && announcer_.phases().time(PhaseKind::kDataWait, next)) {
    begin_pass();
    run_batch(batch);
    place_.batch_done();
    if (updates_) {
      place_.update_done();
      offer_save_point(false, Logs());
    }
  }
  feed_.now().leave();
}

void FitLoop::begin_pass() {
  const int64_t number = feed_.now().current();
  if (turns_->is_last()) {
    turns_->begin_update(number, feed_.batches_of_process());
  } else if (turns_->ends_leaf()) {
    place_.leaf_done();
  }
  turns_->begin_batch(number);
  updates_ = turns_->is_last();
}

/// Callbacks hear of a micro-batch once, when the last virtual rank of this process has it.
void FitLoop::run_batch(const Tensors& batch) {
  const bool told = turns_->now().is_of_last_leaf();
  if (!turns_->is_spare()) {
    pass_.take(batch);
  }
  core_.precision.forget_update();
  if (told) {
    announcer_.all(&Callback::on_train_batch_begin, step_now(Logs()));
  }
  double lr = core_.optimizer->lr();  // the update's; the schedule moves on before its end is told
  if (!turns_->is_spare()) {
    pass_.run(batch,
              turns_->now().leaf,
              turns_->micros(),
              {.epoch = place_.epoch(), .batch = place_.batch(), .step = core_.steps});
  }
  const bool ends_epoch = batches_.has_value() && place_.batch() + 1 == *batches_;
  shows_ = shows_ || (place_.batch() + 1) % options_.log.freq == 0 || ends_epoch;
  Logs logs;
  if (updates_) {
    lr = run_update();
    if (std::exchange(shows_, false)) {
      together_with_ranks([&] { logs = pass_.figures_now(); });
    }
  }
  if (told) {
    Step end = step_now(logs);
    end.lr = lr;
    announcer_.all(&Callback::on_train_batch_end, end);
  }
  pass_.drop();
  if (updates_) {
    end_at_num_iters();
  }
}

/// Returns the rate with which the update was made.
double FitLoop::run_update() {
  turns_->end_update();
  announcer_.phases().tell_communication(core_.network.communication_times());
  together_with_ranks([&] { agreement_.at_update(); });
  if (core_.precision.scales()) {
    announcer_.phases().time(PhaseKind::kUpdate,
                             [&] { core_.precision.begin_update(*core_.optimizer); });
  }
  announcer_.all(&Callback::on_before_update, step_now(Logs()));
  const double lr = core_.optimizer->lr();
  announcer_.phases().time(PhaseKind::kUpdate, [&] { core_.step(); });
  core_.stepped();
  return lr;
}

void FitLoop::finish_epoch() {
  const bool complete = !agreement_.ended();
  Logs logs{{"loss", pass_.figures().loss.compute(core_.group)}};
  logs.add(pass_.figures_now());
  if (eval_ != nullptr && (complete || agreement_.stops_after_epoch()) &&
      ((place_.epoch() + 1) % options_.eval_freq == 0 || place_.epoch() + 1 == options_.epochs)) {
    if (!announcer_.phases().time(PhaseKind::kEvaluation, [&] { return evaluate_now(logs); })) {
      offer_save_point(false, Logs());  // whoever resumes there evaluates anew
      return;
    }
  }
  if (complete) {
    move_schedule(logs);
  }
  announcer_.all(&Callback::on_epoch_end, epoch_now(logs));
  history_.epochs.push_back(logs);
  agreement_.at_epoch_end();
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
  if (!core_.watches_a_figure()) {
    return;
  }
  if (const auto value = schedules_figure().of_epoch(logs, eval_ != nullptr)) {
    core_.schedule->on_metric(*value);
  }
}

bool FitLoop::evaluate_now(Logs& logs) {
  std::function<bool()> asked;
  // Without a number of batches there is no place to resume from.
  if (agreement_.heeds_signals() && batches_.has_value()) {
    asked = [this] { return signal() != 0; };
  }
  const std::vector<metrics::AnyMetric> metrics = core_.metrics;
  const engine::StateDict random = engine::random_state(*core_.network.module);
  const std::optional<Logs> figures = evaluate_unless(core_,
                                                      model_,
                                                      *eval_,
                                                      {.log_freq = options_.log.freq,
                                                       .verbose = options_.log.verbose,
                                                       .callbacks = announcer_.watching()},
                                                      asked);
  if (figures.has_value()) {
    logs.add(*figures, "eval_");
    return true;
  }
  core_.metrics = metrics;  // all is as it was when the epoch's batches were done
  engine::load_random_state(random);
  agreement_.leave_for_signal();
  return false;
}

void FitLoop::offer_save_point(bool epoch_end, const Logs& logs) {
  std::optional<checkpoint::Snapshot> made;
  const std::function<const checkpoint::Snapshot&()> snapshot = [&]() -> const auto& {
    if (!made.has_value()) {
      if (epoch_end) {
        feed_.whole().set_epoch(place_.epoch() + 1);
      }
      made = capture(core_,
                     place_now(epoch_end),
                     {.callbacks = announcer_.callbacks(),
                      .figures = pass_.figures(),
                      .feed = epoch_end ? feed_.whole() : feed_.now()});
    }
    return *made;
  };
  const auto begun = Clock::now();
  announcer_.all(
      &Callback::on_save_point,
      SavePoint{.model = model_,
                .epoch = place_.epoch(),
                .step = core_.steps,
                .epoch_end = epoch_end,
                .evaluates = eval_ != nullptr,
                .requested = agreement_.take_checkpoint_request(),
                .last = agreement_.ended() || (epoch_end && place_.epoch() + 1 == options_.epochs),
                .logs = logs,
                .snapshot = snapshot});
  if (made.has_value()) {
    announcer_.phases().tell({PhaseKind::kCheckpoint, begun, Clock::now(), core_.steps});
  }
}

void FitLoop::end_at_num_iters() {
  if (options_.num_iters.has_value() && core_.steps - place_.begun_step() >= *options_.num_iters) {
    agreement_.finish();
  }
}

void FitLoop::together_with_ranks(const std::function<void()>& work) {
  core_.group.size() > 1 ? announcer_.phases().time(PhaseKind::kAgree, work) : work();
}

Place FitLoop::place_now(bool epoch_end) const {
  Place place{.ranks = core_.group.size(),
              .virtual_ranks = fleet::virtual_ranks(),
              .asked = start_.asked,
              .seed = seed_,
              .threads = at::get_num_threads(),
              .kernels = engine::kernels_in_use(),
              .begun_from = begun_from_};
  agreement_.put(place, epoch_end);
  if (epoch_end) {
    place_.put_next_epoch(place, feed_.new_legs());
  } else {
    place_.put(place, batches_);
  }
  return place;
}

Training FitLoop::training() const {
  return {
      .model = model_,
      .epochs = options_.epochs,
      .batches = batches_,
      .batch_size = feed_.batch_size() * fleet::virtual_ranks() * options_.accumulate_grad_batches,
      .samples = feed_.whole().samples(),
      .verbose = options_.log.verbose,
      .log_freq = options_.log.freq,
      .run_dir = options_.run_dir,
      .evaluates = eval_ != nullptr,
      .scales = core_.precision.scales(),
      .resumed = resumed_,
      .done = done(),
      .epoch = place_.epoch(),
      .step = core_.steps,
      .options = &options_,
      .loss = core_.loss.has_value() ? core_.loss->name() : "training_step",
      .loss_parameters = core_.loss.has_value() ? core_.loss->parameters() : "",
      .metrics = core_.metric_names(),
      .amp = core_.precision.name(),
      .schedule = core_.schedule.has_value() ? core_.schedule->state_dict().scheduler : "",
      .schedule_parameters = core_.schedule.has_value() ? core_.schedule->parameters() : "",
      .schedule_unit = core_.schedule.has_value() ? unit_in_words(core_.schedule->unit()) : "",
      .monitor = core_.watches_a_figure() ? core_.monitor : "",
      .ema = core_.average.has_value() ? core_.average->parameters() : "",
      .base_lr = core_.schedule.has_value() ? core_.schedule->state_dict().base_lrs.front()
                                            : core_.optimizer->lr(),
      .class_names = class_names()};
}

std::vector<std::string> FitLoop::class_names() const {
  if (!options_.log.class_names.empty()) {
    return options_.log.class_names;
  }
  std::vector<std::string> names;
  if (eval_ != nullptr) {
    names = eval_->class_names();
  }
  return names.empty() ? feed_.whole().class_names() : names;
}

Epoch FitLoop::epoch_now(const Logs& logs) const {
  return {.model = model_,
          .epoch = place_.epoch(),
          .epochs = options_.epochs,
          .step = core_.steps,
          .evaluates = eval_ != nullptr,
          .seconds = std::chrono::duration<double>(Clock::now() - epoch_begun_).count(),
          .logs = logs,
          .loader = feed_.now().stats()};
}

Step FitLoop::step_now(const Logs& logs) const {
  return {.model = model_,
          .epoch = place_.epoch(),
          .batch = place_.batch(),
          .batches = batches_,
          .step = core_.steps,
          .updates = updates_,
          .skipped = core_.precision.skipped(),
          .samples = agreement_.samples(),
          .loss = agreement_.loss(),
          .lr = core_.optimizer->lr(),
          .logs = logs,
          .inputs = pass_.inputs()};
}

}  // namespace argosy::train::detail
