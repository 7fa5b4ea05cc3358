#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "argosy/events/tensorboard_writer.h"
#include "argosy/events/visualdl_writer.h"
#include "argosy/train/callback.h"
#include "argosy/train/callbacks/eval_samples.h"
#include "argosy/train/callbacks/figures.h"

namespace argosy::train {

struct BoardOptions {
  int64_t log_freq = 0;  ///< batches between two records of training; 0: fit()'s log.freq
  /// Updates between two histograms of every weight and gradient, "weights/<name>" and
  /// "gradients/<name>", before the update. 0: no histograms. Cost: 15 ns per element, on the first
  /// rank.
  int64_t histogram_freq = 0;
  /// True: "eval/samples" shows pictures of each evaluation, in a green frame where the network is
  /// right, and the text "eval/captions" names them, if the data are images with classes.
  bool samples = true;
};

/// Writes fit()'s figures for TensorBoard or VisualDL. The first rank writes; the figures cover all
/// ranks.
///
///     model.fit(train, valid, {.callbacks = {train::TensorBoard("runs/a/tensorboard"),
///                                            train::VisualDL("runs/a/visualdl")}});
///     // tensorboard --logdir runs, visualdl --logdir runs
///
/// By update it writes "train/loss", "train/lr", "train/images_per_second" (samples without
/// pictures), "train/input_wait" and "train/<metric>"; by epoch, from 1, "eval/loss" and
/// "eval/<metric>"; and first, as text, what is trained and how. Tags are those of Paddle's
/// VisualDL callback, which counts epochs from 0.
///
/// A resumed training adds a file to the folder. TensorBoard shows both files as one, with each
/// update once: figures after the last checkpoint of a killed run are purged, and so is a former
/// training if a new one begins. An evaluation that runs again, and a histogram of the update from
/// which it resumes, may appear twice with the same figures. VisualDL shows only the newest file of
/// a folder, so earlier figures stay in their own file.
/// Errors: UsageError without a folder and a run folder, and for options below 0; DataError if the
/// file cannot be made. A disk that fills up later does not end the training.
template <typename Writer>
class Board final : public Callback {
 public:
  /// `folder`: if empty, tensorboard or visualdl in the run's folder.
  explicit Board(std::string folder = {}, const BoardOptions& options = {});

  void on_train_begin(const Training& training) override;
  void on_train_end(const Training& training) override;
  void on_exception(const Training& training, const std::string& what) override;
  void on_epoch_begin(const Epoch& epoch) override;
  void on_epoch_end(const Epoch& epoch) override;
  void on_before_update(const Step& step) override;
  void on_train_batch_end(const Step& step) override;
  void on_phase(const Phase& phase) override;
  void on_eval_begin(const Evaluation& evaluation) override;
  void on_eval_batch_end(const EvalStep& step) override;

 private:
  void close();

  std::string folder_;
  BoardOptions options_;
  detail::TrainWindow window_{};
  detail::EvalSamples samples_{};
  std::shared_ptr<Writer> writer_;  // of the first rank, while fit() runs
};

using TensorBoard = Board<events::TensorBoardWriter>;
using VisualDL = Board<events::VisualDLWriter>;

extern template class Board<events::TensorBoardWriter>;
extern template class Board<events::VisualDLWriter>;

}  // namespace argosy::train
