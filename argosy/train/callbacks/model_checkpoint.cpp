#include "argosy/train/callbacks/model_checkpoint.h"

#include <cmath>
#include <filesystem>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/set_aside.h"
#include "argosy/checkpoint/snapshot.h"
#include "argosy/comm/json.h"
#include "argosy/train/checkpoint_folder.h"
#include "argosy/train/model.h"

namespace argosy::train {
namespace {

using Clock = std::chrono::steady_clock;

/// The folder of a run's checkpoints.
constexpr const char* kFolder = "/checkpoints";

}  // namespace

ModelCheckpoint::ModelCheckpoint(const ModelCheckpointOptions& options)
    : options_(options), monitor_(options.monitor, options.mode, 0) {
  ARGOSY_CHECK(options.every_epochs >= 0 && options.every_steps >= 0 && options.every.count() >= 0,
               "train.ModelCheckpoint",
               "every_epochs, every_steps and every must not be negative, got {}, {} and {} s",
               options.every_epochs,
               options.every_steps,
               options.every.count());
  ARGOSY_CHECK(options.keep_last >= 0 && options.keep_best >= 0,
               "train.ModelCheckpoint",
               "keep_last and keep_best must not be negative, got {} and {}",
               options.keep_last,
               options.keep_best);
}

void ModelCheckpoint::on_train_begin(const Training& training) {
  ARGOSY_CHECK(!options_.dir.empty() || !training.run_dir.empty(),
               "train.ModelCheckpoint",
               "there is no folder for checkpoints: set ModelCheckpointOptions::dir, or fit()'s "
               "run_dir");
  monitor_ = detail::Monitor(options_.monitor, options_.mode, 0);
  if (!options_.monitor.empty()) {
    monitor_.check(training);
  }
  best_.reset();
  last_.reset();
  const checkpoint::SaverOptions saver{
      .keep = {.keep_last = options_.keep_last,
               .keep_best = options_.monitor.empty() ? 0 : options_.keep_best,
               .best = monitor_.larger_is_better() ? checkpoint::Best::kHighest
                                                   : checkpoint::Best::kLowest},
      .keep_prefix = "step-",  // what Model::save() has put there stays
      .async = options_.async,
      .sharded = options_.sharded};
  const std::string folder = options_.dir.empty() ? training.run_dir + kFolder : options_.dir;
  if (training.model.is_first_worker()) {
    checkpoint::set_aside_later(folder, training.step);
  }
  if (training.resumed && !options_.monitor.empty()) {
    find_best(training.model.group(), folder);
  }
  saver_ = std::make_shared<checkpoint::Saver>(folder, saver, training.model.group());
  saved_at_ = Clock::now();
  saved_step_ = -1;
}

void ModelCheckpoint::on_train_batch_begin(const Step& step) {
  if (options_.every.count() > 0 && step.model.is_first_worker() &&
      Clock::now() - saved_at_ >= options_.every) {
    step.model.request_checkpoint();
  }
}

bool ModelCheckpoint::wanted(const SavePoint& point) const {
  if (point.requested || point.last) {
    return point.step != saved_step_ || point.epoch_end != saved_at_epoch_end_;
  }
  const auto due = [](int64_t number, int64_t every) { return every > 0 && number % every == 0; };
  return point.epoch_end ? due(point.epoch + 1, options_.every_epochs)
                         : due(point.step, options_.every_steps);
}

std::optional<double> ModelCheckpoint::score_at(const SavePoint& point) const {
  if (options_.monitor.empty() || !point.epoch_end) {
    return std::nullopt;
  }
  const std::optional<double> score = monitor_.of_epoch(point.logs, point.evaluates);
  return score.has_value() && std::isfinite(*score) ? score : std::nullopt;
}

void ModelCheckpoint::on_save_point(const SavePoint& point) {
  if (!wanted(point)) {
    return;
  }
  const std::optional<double> score = score_at(point);
  last_ = saver_->directory() + "/" + checkpoint::step_name(point.step);
  if (score.has_value() && monitor_.improves(*score)) {
    best_ = last_;
  }
  checkpoint::Snapshot snapshot = point.snapshot();
  snapshot.score = score;
  saver_->save(snapshot);
  saved_at_ = Clock::now();
  saved_step_ = point.step;
  saved_at_epoch_end_ = point.epoch_end;
}

void ModelCheckpoint::on_train_end(const Training& /*training*/) {
  saver_->wait();
  times_ = saver_->times();
  saver_.reset();
}

void ModelCheckpoint::on_exception(const Training& /*training*/, const std::string& /*what*/) {
  saver_.reset();  // what is being written is finished, or said to have failed
}

double ModelCheckpoint::best_score() const {
  return best_.has_value() ? monitor_.best() : std::numeric_limits<double>::quiet_NaN();
}

void ModelCheckpoint::find_best(const comm::Group& group, const std::string& folder) {
  nlohmann::json found;
  if (group.rank() == 0 && std::filesystem::is_directory(folder)) {
    for (const checkpoint::Inspected& one : checkpoint::list(folder, checkpoint::Check::kSizes)) {
      if (one.state == checkpoint::State::kWhole && one.manifest->score.has_value() &&
          monitor_.improves(*one.manifest->score)) {
        found = {one.path, *one.manifest->score};
      }
    }
  }
  if (group.size() > 1) {
    found = comm::broadcast_object(found, group);
  }
  if (!found.is_null()) {
    best_ = found[0].get<std::string>();
    monitor_.set_best(found[1].get<double>());
  }
}

}  // namespace argosy::train
