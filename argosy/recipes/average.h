#pragma once

#include <memory>

#include <torch/nn/module.h>

#include "argosy/optim/ema.h"
#include "argosy/train/callback.h"

// Internal to the room.
namespace argosy::recipes {

/// Keeps an average of the weights while a model is trained, and evaluates with it. The first
/// updates count more (optim::EmaWarmup::kNumUpdates), so that short trainings have something of
/// it.
class Average final : public train::Callback {
 public:
  Average(const torch::nn::Module& module, double decay)
      : average_(module, {.decay = decay, .warmup = optim::EmaWarmup::kNumUpdates}) {}

  void on_train_batch_end(const train::Step& step) override {
    if (step.updates) {
      average_.update();
    }
  }
  void on_eval_begin(const train::Evaluation& /*evaluation*/) override { evaluated_ = applied(); }
  void on_eval_end(const train::Evaluation& /*evaluation*/) override { evaluated_.reset(); }

  /// The model has the average while this lives; null before the first update.
  [[nodiscard]] std::unique_ptr<optim::Averaged> applied() {
    return average_.num_updates() == 0 ? nullptr : std::make_unique<optim::Averaged>(average_);
  }

 private:
  optim::ExponentialMovingAverage average_;
  std::unique_ptr<optim::Averaged> evaluated_;
};

}  // namespace argosy::recipes
