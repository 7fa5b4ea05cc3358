#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "argosy/checkpoint/saver.h"
#include "argosy/train/callback.h"
#include "argosy/train/callbacks/monitor.h"

namespace argosy::train {

/// When checkpoints are saved, and which stay. The moments can be combined.
struct ModelCheckpointOptions {
  std::string dir{};         ///< unset: `checkpoints` in fit()'s run_dir
  int64_t every_epochs = 1;  ///< after every so many epochs, with their evaluation; 0: never
  int64_t every_steps = 0;   ///< after every so many updates; 0: never
  /// After this time by rank 0's clock, at the next update. Zero: never.
  std::chrono::duration<double> every{0};
  /// The figure that decides which are best, "loss" or a metric's name: of the evaluation, or of
  /// the epoch without one. Unset: no checkpoint is the best.
  std::string monitor{};
  MonitorMode mode = MonitorMode::kAuto;
  int64_t keep_last = 3;  ///< number of newest ones that stay; 0: all
  int64_t keep_best = 1;  ///< number of best ones that stay too, with a monitor
  bool async = true;      ///< true: a thread writes; false: the loop waits
  bool sharded = false;   ///< each rank writes its share, see checkpoint::SaverOptions
};

/// Saves checkpoints during training, each whole or not at all, as `step-000000120/` in a folder.
/// It saves one more when fit() ends or a signal asks for it. fit({.resume = kAuto}) resumes from
/// the newest. checkpoint::load_weights() and Python's safetensors read the weights.
///
///     auto keep = std::make_shared<train::ModelCheckpoint>(train::ModelCheckpointOptions{
///         .dir = "runs/a/checkpoints", .every_steps = 500, .monitor = "acc"});
///     model.fit(train, valid, {.epochs = 10, .callbacks = {keep}});
///     model.load(keep->best().value());
///
/// Errors: UsageError for negative numbers, or keep_best without the monitor's figure in the logs;
/// CheckpointError from fit() if a checkpoint cannot be written, see checkpoint::Saver.
/// Source: Lightning's and Keras' ModelCheckpoint; paddle.callbacks.ModelCheckpoint has save_freq
/// and save_dir.
class ModelCheckpoint final : public Callback {
 public:
  explicit ModelCheckpoint(const ModelCheckpointOptions& options = {});

  void on_train_begin(const Training& training) override;
  void on_train_batch_begin(const Step& step) override;
  void on_save_point(const SavePoint& point) override;
  void on_train_end(const Training& training) override;

  void on_exception(const Training& training, const std::string& what) override;

  [[nodiscard]] const ModelCheckpointOptions& options() const { return options_; }
  /// The checkpoint with the best figure, of this run and those before it, or nullopt.
  [[nodiscard]] const std::optional<std::string>& best() const { return best_; }
  /// Its figure; NaN without one.
  [[nodiscard]] double best_score() const;
  /// The last one that was saved, or nullopt.
  [[nodiscard]] const std::optional<std::string>& last() const { return last_; }
  /// The time of the saves in the last fit().
  [[nodiscard]] checkpoint::SaverTimes times() const { return times_; }

 private:
  /// Finds the best one on the disk. Collective.
  void find_best(const comm::Group& group, const std::string& folder);
  [[nodiscard]] bool wanted(const SavePoint& point) const;
  /// The figure at this point, if there is one.
  [[nodiscard]] std::optional<double> score_at(const SavePoint& point) const;

  ModelCheckpointOptions options_;
  detail::Monitor monitor_;
  std::shared_ptr<checkpoint::Saver> saver_;
  std::chrono::steady_clock::time_point saved_at_{};
  int64_t saved_step_ = -1;
  bool saved_at_epoch_end_ = false;
  std::optional<std::string> best_{};
  std::optional<std::string> last_{};
  checkpoint::SaverTimes times_{};
};

}  // namespace argosy::train
