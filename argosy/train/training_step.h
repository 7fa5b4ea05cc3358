#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "argosy/train/feed.h"

namespace argosy::train {

class Model;

namespace detail {
class Core;
class StepFigures;
}  // namespace detail

/// A batch of training in the hands of FitOptions::training_step, which returns its loss:
///
///     model.fit(train, {.batch_size = 64, .training_step = [](train::TrainingStep& step) {
///       train::Tensors outputs = step.forward();
///       at::Tensor smooth = outputs.front().pow(2).mean();
///       step.log("smooth", smooth);
///       return step.loss(outputs) + 0.1 * smooth;
///     }});
///
/// fit() does the rest: backward, the average over ranks and accumulated batches, the update, mixed
/// precision, progress and checkpoints. A step may train a second model with an optimizer of its
/// own, as GANs do; train::KeepInCheckpoint lets checkpoints have that model too. The step is valid
/// during the call only, and belongs to its thread. That the loss depends on the network is checked
/// in the first batch only.
class TrainingStep final {
 public:
  /// The place of a batch in the training.
  struct Place {
    int64_t epoch = 0;  ///< from 0
    int64_t batch = 0;  ///< in the epoch, from 0
    int64_t step = 0;   ///< updates before this batch
  };

  TrainingStep(detail::Core& core,
               Model& model,
               detail::StepFigures& figures,
               const Tensors& batch,
               const Place& place);

  /// The batch of this rank on the network's device.
  [[nodiscard]] const Tensors& batch() const { return batch_; }
  /// The batch's first tensors, as many as the network's forward takes, and the others.
  [[nodiscard]] std::span<const at::Tensor> inputs() const;
  [[nodiscard]] std::span<const at::Tensor> labels() const;
  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] Model& model() const { return model_; }

  /// Runs the network by its distributed wrapper, in mixed precision if the model has that. Without
  /// an argument it takes inputs(). A step may call it several times, as often on every rank: the
  /// one backward of fit() covers all calls.
  /// Errors: UsageError for another number of tensors than forward takes.
  [[nodiscard]] Tensors forward();
  [[nodiscard]] Tensors forward(const Tensors& inputs);

  /// Returns the loss of prepare() for the first output and the first label, and adds both to the
  /// metrics of prepare().
  /// Errors: UsageError without a loss or without labels.
  [[nodiscard]] at::Tensor loss(const Tensors& outputs);

  /// Adds a mean over this rank's batch to the figure `name`. Progress, the run's page, TensorBoard
  /// and History show the mean over the samples of all ranks since the start of the epoch. Not
  /// every batch or rank has to log a figure. Errors: UsageError that lists the reserved names, for
  /// one of them ("loss", "lr", "eval_…", a metric of prepare()); UsageError for a tensor that is
  /// not a single number.
  void log(std::string_view name, double value);
  void log(std::string_view name, const at::Tensor& value);

  /// True if forward() was called.
  [[nodiscard]] bool ran_network() const { return ran_network_; }

 private:
  detail::Core& core_;
  Model& model_;
  detail::StepFigures& figures_;
  Tensors batch_;
  Place place_;
  bool ran_network_ = false;
};

}  // namespace argosy::train
