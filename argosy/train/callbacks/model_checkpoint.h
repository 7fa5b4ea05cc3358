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

/// When checkpoints are saved and which stay. Several moments can be given at once.
struct ModelCheckpointOptions {
  std::string dir{};         ///< unset: `checkpoints` in fit()'s run_dir
  int64_t every_epochs = 1;  ///< after an epoch and its evaluation; 0: not
  int64_t every_steps = 0;   ///< updates; 0: not
  /// By rank 0's clock, at the next update; zero: not.
  std::chrono::duration<double> every{0};
  /// The figure by which the best ones stay, "loss" or a metric's name: of the evaluation, else of
  /// the epoch. Unset: none is the best.
  std::string monitor{};
  MonitorMode mode = MonitorMode::kAuto;
  int64_t keep_last = 3;  ///< so many of the newest stay; 0: all
  int64_t keep_best = 1;  ///< and so many of the best, with a monitor
  bool async = true;      ///< written by a thread; false: the loop waits
  bool sharded = false;   ///< each rank writes its share, see checkpoint::SaverOptions
};

/// Saves checkpoints while training, each whole or not at all: `step-000000120/` in a folder. One
/// more when fit() ends or a signal asks for it. fit({.resume = kAuto}) goes on from the newest,
/// checkpoint::load_weights() and Python's safetensors read the weights.
///
///     auto keep = std::make_shared<train::ModelCheckpoint>(train::ModelCheckpointOptions{
///         .dir = "runs/a/checkpoints", .every_steps = 500, .monitor = "acc"});
///     model.fit(train, valid, {.epochs = 10, .callbacks = {keep}});
///     model.load(keep->best().value());
///
/// Errors: UsageError for negative numbers, keep_best without a monitor's figure in the logs;
/// CheckpointError from fit() when a checkpoint cannot be written, see checkpoint::Saver.
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
  /// The checkpoint with the best figure, of this run and those before it; nullopt: none.
  [[nodiscard]] const std::optional<std::string>& best() const { return best_; }
  /// Its figure; NaN without one.
  [[nodiscard]] double best_score() const;
  /// The last one that was saved; nullopt: none.
  [[nodiscard]] const std::optional<std::string>& last() const { return last_; }
  /// Where the time of the last fit()'s saves went.
  [[nodiscard]] checkpoint::SaverTimes times() const { return times_; }

 private:
  /// The best of those that are on the disk. Collective.
  void find_best(const comm::Group& group, const std::string& folder);
  [[nodiscard]] bool wanted(const SavePoint& point) const;
  /// The figure at this point, where there is one.
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
