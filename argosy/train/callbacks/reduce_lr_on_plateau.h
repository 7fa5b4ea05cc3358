#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "argosy/optim/lr_plateau.h"
#include "argosy/train/callback.h"
#include "argosy/train/callbacks/monitor.h"

namespace argosy::train {

struct ReduceLROnPlateauOptions {
  std::string monitor = "loss";  ///< figure of the evaluation, or of the training without one
  double factor = 0.1;           ///< in (0, 1)
  int64_t patience = 10;  ///< number of evaluations without an improvement that are tolerated
  MonitorMode mode = MonitorMode::kAuto;
  double min_delta = 1e-4;
  int64_t cooldown = 0;  ///< number of evaluations after a reduction that do not count
  double min_lr = 0;
  int verbose = 1;
};

/// Multiplies the learning rate by `factor` when a figure has stopped improving, and keeps the
/// proportions between groups of parameters. Defaults are Paddle's. It cannot be combined with a
/// schedule, which would set the rate again. As a schedule it is `prepare(…, {.schedule =
/// optim::ReduceLROnPlateau(optimizer, …)})`.
/// Errors: UsageError for options out of range, and if there is no such figure.
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
  std::optional<optim::LRSchedulerState> saved_{};  // to resume from
};

}  // namespace argosy::train
