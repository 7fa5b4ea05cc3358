#pragma once

#include <cstdint>

#include "argosy/train/agreement.h"
#include "argosy/train/core.h"
#include "argosy/train/options.h"
#include "argosy/train/phases.h"
#include "argosy/train/step_figures.h"
#include "argosy/train/training_step.h"

namespace argosy::train::detail {

/// Forward and backward of one batch after the other: with the loss of prepare(), or as
/// FitOptions::training_step says. It sums up the epoch's loss and figures.
class BatchPass final {
 public:
  BatchPass(
      Core& core, Model& model, const FitOptions& options, Agreement& agreement, Phases& phases)
      : core_(core),
        model_(model),
        training_step_(options.training_step),
        agreement_(agreement),
        phases_(phases) {}

  /// The batch's inputs on the network's device, from take() to drop().
  void take(const Tensors& batch);
  [[nodiscard]] const Tensors& inputs() const { return inputs_; }
  void drop() { inputs_.clear(); }
  /// Adds the gradients of the batch's mean loss divided by `together`, for this rank's virtual
  /// rank `leaf`. Errors: UsageError for a training_step whose loss cannot train the network.
  void run(const Tensors& batch, int64_t leaf, int64_t together, const TrainingStep::Place& place);

  /// Returns the figures of the epoch so far beside the loss. Collective.
  [[nodiscard]] Logs figures_now() const;
  [[nodiscard]] EpochFigures& figures() { return figures_; }

 private:
  [[nodiscard]] LossValue usual_loss(const Tensors& batch);
  [[nodiscard]] LossValue users_loss(const Tensors& batch, const TrainingStep::Place& place);

  Core& core_;
  Model& model_;
  const TrainingStepFunction& training_step_;
  Agreement& agreement_;
  Phases& phases_;
  EpochFigures figures_{};
  Tensors inputs_{};
  Tensors outputs_{};  // until the batch's metrics are updated
  Tensors labels_{};
  bool checked_ = false;  // the user's loss, that it can train the network
};

}  // namespace argosy::train::detail
