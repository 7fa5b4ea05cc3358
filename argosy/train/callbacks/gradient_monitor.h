#pragma once

#include <cstdint>
#include <string>

#include "argosy/train/callback.h"

namespace argosy::train {

/// What GradientMonitor does if a gradient has a NaN or an infinity.
enum class OnNonFinite {
  kRaise,   ///< ends fit() with a DataError
  kStop,    ///< ends fit() by stop()
  kReport,  ///< writes to the log, once per parameter
};

struct GradientMonitorOptions {
  OnNonFinite on_non_finite = OnNonFinite::kRaise;
  int64_t log_freq = 0;  ///< updates between two tables of norms on stdout; 0: no tables
};

/// Checks the averaged gradients before each update. It computes their norms and names the first
/// gradient that is not finite, with its layer and the step, before it reaches the weights (except
/// with the strategy's overlap_update, which updates in backward). If the scaler of mixed precision
/// skips the update for such a gradient, only the norm shows it. All ranks see the same averages
/// and decide alike.
/// Errors: UsageError with the strategy's scatter_gradients, where nobody has all averages.
/// Cost: one pass over the gradients.
class GradientMonitor final : public Callback {
 public:
  explicit GradientMonitor(const GradientMonitorOptions& options = {});

  void on_before_update(const Step& step) override;

  /// The norm of all gradients together at the last update; NaN before the first.
  [[nodiscard]] double norm() const { return norm_; }

 private:
  GradientMonitorOptions options_;
  double norm_ = 0;
  int64_t seen_ = 0;
  std::vector<std::string> reported_;
};

}  // namespace argosy::train
