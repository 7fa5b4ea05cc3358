#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "argosy/engine/state_dict.h"
#include "argosy/train/callback.h"
#include "argosy/train/callbacks/monitor.h"

namespace argosy::train {

struct EarlyStoppingOptions {
  std::string monitor = "loss";  ///< of the evaluation; of the training where there is none
  MonitorMode mode = MonitorMode::kAuto;
  /// Evaluations without an improvement that are borne; the next one ends fit().
  int64_t patience = 0;
  double min_delta = 0;              ///< what counts as an improvement
  std::optional<double> baseline{};  ///< must be improved on too
  /// Gives the network the weights of the best evaluation when fit() ends early.
  bool restore_best_weights = false;
  int verbose = 1;  ///< 0: says nothing
};

/// Ends fit() when a figure has stopped getting better.
///
///     model.fit(train, valid, {.callbacks = {train::EarlyStopping({.monitor = "acc", .patience =
///     3})}});
///
/// Looks at the figures of each epoch that had an evaluation, or of each epoch where fit() has no
/// evaluation set. They are the same on all ranks, and so is the decision. Differs from Paddle's:
/// with patience 0 an evaluation that improves does not end training.
/// Errors: UsageError when there is no such figure, with those that there are.
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
