#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "argosy/engine/state_dict.h"
#include "argosy/train/callback.h"
#include "argosy/train/callbacks/monitor.h"

namespace argosy::train {

struct EarlyStoppingOptions {
  std::string monitor = "loss";  ///< figure of the evaluation, or of the training without one
  MonitorMode mode = MonitorMode::kAuto;
  /// Number of evaluations without an improvement that are tolerated. The next one ends fit().
  int64_t patience = 0;
  double min_delta = 0;              ///< the smallest improvement that counts
  std::optional<double> baseline{};  ///< a figure must improve on this value too
  /// Gives the network the weights of the best evaluation when fit() ends early: those that the
  /// ranks have together, where each trains its own.
  bool restore_best_weights = false;
  int verbose = 1;  ///< 0: no messages
};

/// Ends fit() when a figure has stopped improving.
///
///     model.fit(train, valid,
///               {.callbacks = {train::EarlyStopping({.monitor = "acc", .patience = 3})}});
///
/// It looks at the figures of each epoch with an evaluation, or of each epoch if fit() has no
/// evaluation set. They are equal on all ranks, and so is the decision. In contrast to Paddle, an
/// evaluation that improves does not end training with patience 0.
/// Errors: UsageError naming the existing figures if there is no such figure.
class EarlyStopping final : public Callback {
 public:
  explicit EarlyStopping(const EarlyStoppingOptions& options = {});

  void on_train_begin(const Training& training) override;
  void on_epoch_end(const Epoch& epoch) override;
  void on_train_end(const Training& training) override;

  [[nodiscard]] double best() const { return monitor_.best(); }
  [[nodiscard]] int64_t best_epoch() const { return best_epoch_; }

  [[nodiscard]] std::string name() const override { return "early_stopping"; }
  [[nodiscard]] nlohmann::ordered_json state() const override;
  void load_state(const nlohmann::ordered_json& state) override;
  [[nodiscard]] engine::StateDict tensors() const override;
  void load_tensors(const engine::StateDict& tensors) override;

 private:
  EarlyStoppingOptions options_;
  detail::Monitor monitor_;
  int64_t waited_ = 0;
  int64_t best_epoch_ = -1;
  bool stopped_ = false;
  engine::StateDict best_weights_;
};

}  // namespace argosy::train
