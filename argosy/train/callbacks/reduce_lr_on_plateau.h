#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "argosy/optim/lr_plateau.h"
#include "argosy/train/callback.h"
#include "argosy/train/callbacks/monitor.h"

namespace argosy::train {

struct ReduceLROnPlateauOptions {
  std::string monitor = "loss";  ///< of the evaluation; of the training where there is none
  double factor = 0.1;           ///< in (0, 1)
  int64_t patience = 10;         ///< evaluations without an improvement that are put up with
  MonitorMode mode = MonitorMode::kAuto;
  double min_delta = 1e-4;
  int64_t cooldown = 0;  ///< evaluations after a reduction that do not count
  double min_lr = 0;
  int verbose = 1;
};

/// Multiplies the learning rate by `factor` when a figure has stopped getting better. Of every
/// group of parameters, keeping their proportions. Defaults are Paddle's. Not together with a
/// schedule, which would set the rate again. The same as a schedule:
/// `prepare(…, {.schedule = optim::ReduceLROnPlateau(optimizer, …)})`.
/// Errors: UsageError for options out of range, and when there is no such figure.
class ReduceLROnPlateau final : public Callback {
 public:
  explicit ReduceLROnPlateau(const ReduceLROnPlateauOptions& options = {});

  void on_train_begin(const Training& training) override;
  void on_epoch_end(const Epoch& epoch) override;

  [[nodiscard]] std::string name() const override { return "reduce_lr_on_plateau"; }
  [[nodiscard]] nlohmann::ordered_json state() const override;
  void load_state(const nlohmann::ordered_json& state) override;

 private:
  ReduceLROnPlateauOptions options_;
  detail::Monitor monitor_;
  std::optional<optim::ReduceLROnPlateau> schedule_{};
  std::optional<optim::LRSchedulerState> saved_{};  // to go on from
};

}  // namespace argosy::train
