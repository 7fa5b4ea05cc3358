#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "argosy/events/tensorboard_writer.h"
#include "argosy/events/visualdl_writer.h"
#include "argosy/train/callback.h"
#include "argosy/train/callbacks/figures.h"
#include "argosy/train/callbacks/sample_sheet.h"

namespace argosy::train {

struct BoardOptions {
  int64_t log_freq = 0;  ///< batches between two records of training; 0: fit()'s
  /// Updates between two histograms of every weight and gradient, "weights/<name>" and
  /// "gradients/<name>", before the update; 0: none. Cost: 15 ns an element, on the first rank.
  int64_t histogram_freq = 0;
  /// Pictures of each evaluation with their labels and what the network said, where the data is
  /// images with classes: "eval/samples".
  bool samples = true;
};

/// Writes fit()'s figures for TensorBoard or VisualDL, by the first rank; they are those of all
/// ranks.
///
///     model.fit(train, valid, {.callbacks = {train::TensorBoard("runs/a/tensorboard"),
///                                            train::VisualDL("runs/a/visualdl")}});
///     // tensorboard --logdir runs, visualdl --logdir runs
///
/// Over the updates: "train/loss", "train/lr", "train/images_per_second" (samples where
/// there are no pictures), "train/input_wait" and
/// "train/<metric>"; over the epochs, counted from 1: "eval/loss", "eval/<metric>"; at the begin
/// what was trained and how, as text. Tags are those of Paddle's VisualDL callback, which counts
/// epochs from 0. A training that goes on adds a file to the folder. TensorBoard shows both as one,
/// each update once: what a run that was killed wrote after its last checkpoint is purged, and so
/// is another training's where one begins anew. (An evaluation that is made again, and a histogram
/// of the update to go on from, may stand there twice, with the same figures.) VisualDL knows no
/// such thing: of a folder it shows the newest file alone, so what came before is in its own file.
/// Errors: UsageError without a folder and a run folder, and for options below 0; DataError when
/// the file cannot be made. A disk that fills up later ends no training.
template <typename Writer>
class Board final : public Callback {
 public:
  /// `folder`: empty: tensorboard or visualdl in the run's folder.
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
  detail::SampleSheet samples_{};
  std::shared_ptr<Writer> writer_;  // of the first rank, while fit() runs
};

using TensorBoard = Board<events::TensorBoardWriter>;
using VisualDL = Board<events::VisualDLWriter>;

extern template class Board<events::TensorBoardWriter>;
extern template class Board<events::VisualDLWriter>;

}  // namespace argosy::train
