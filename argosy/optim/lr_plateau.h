#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argosy/optim/lr_scheduler.h"

namespace argosy::optim {

enum class PlateauMode { kMin, kMax };

/// What `threshold` is relative to.
enum class ThresholdMode { kRel, kAbs };

/// The best metric during a cooldown: updated (kTracksBest) or not (kLooksAway).
enum class DuringCooldown {
  kTracksBest,  ///< as in PyTorch
  kLooksAway,   ///< as in Paddle
};

/// Defaults are those of PyTorch and Paddle, which differ only in during_cooldown.
struct ReduceLROnPlateauOptions {
  PlateauMode mode = PlateauMode::kMin;  ///< kMin: less is better
  double factor = 0.1;                   ///< in (0, 1)
  int64_t patience = 10;                 ///< number of bad metrics in a row that is tolerated
  double threshold = 1e-4;               ///< how much better a metric must be to count
  ThresholdMode threshold_mode = ThresholdMode::kRel;
  int64_t cooldown = 0;  ///< number of metrics after a reduction that do not count as bad
  double min_lr = 0;
  double eps = 1e-8;  ///< smaller reductions are not made (Paddle: epsilon)
  DuringCooldown during_cooldown = DuringCooldown::kTracksBest;
};

/// Lowers all rates by a factor when a metric has stopped improving.
///
///     optim::ReduceLROnPlateau scheduler(optimizer, {.factor = 0.5, .patience = 3});
///     for (…) { train_one_epoch(); scheduler.step(validation_loss()); }
///
/// It lowers the current rates, so set_lr() in between counts. A NaN is never better. All ranks
/// must give the same metric.
/// Source: torch.optim.lr_scheduler 2.x, ReduceLROnPlateau; Paddle 3.3, paddle/optimizer/lr.py,
///   ReduceOnPlateau.
class ReduceLROnPlateau final {
 public:
  explicit ReduceLROnPlateau(Optimizer optimizer, const ReduceLROnPlateauOptions& options = {});

  /// Looks at the next metric.
  void step(double metric);
  /// The same under the trainer's name.
  void on_metric(double metric) { step(metric); }

  [[nodiscard]] double last_lr() const { return optimizer_.lr(); }
  [[nodiscard]] int64_t last_step() const noexcept { return state_.step; }
  /// See LRScheduler.
  [[nodiscard]] std::string parameters() const;
  [[nodiscard]] static constexpr ScheduleUnit unit() noexcept { return ScheduleUnit::kMetric; }

  /// Includes the current rates.
  [[nodiscard]] LRSchedulerState state_dict() const;
  /// Continues from `state` and sets its rates. Errors: CheckpointError as LRScheduler.
  void load_state_dict(const LRSchedulerState& state);

 private:
  [[nodiscard]] bool is_better(double metric) const;
  void reduce();

  Optimizer optimizer_;
  ReduceLROnPlateauOptions options_;
  LRSchedulerState state_{};
};

}  // namespace argosy::optim
