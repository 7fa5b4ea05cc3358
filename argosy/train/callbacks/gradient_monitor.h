#pragma once

#include <cstdint>
#include <string>

#include "argosy/train/callback.h"

namespace argosy::train {

/// What GradientMonitor does when a gradient has a NaN or an infinity.
enum class OnNonFinite {
  kRaise,   ///< ends fit() with a DataError
  kStop,    ///< ends it by stop()
  kReport,  ///< says so in the log, once for each parameter
};

struct GradientMonitorOptions {
  OnNonFinite on_non_finite = OnNonFinite::kRaise;
  int64_t log_freq = 0;  ///< updates between two tables of norms on stdout; 0: no tables
};

/// Looks at the averaged gradients before each update: their norms, and the first one that is not
/// finite, which is named with its layer and the step, before it reaches the weights (not with the
/// strategy's overlap_update, which moves them in backward).
/// An update that the scaler of mixed precision skips for such a gradient is no error: its norm
/// alone tells of it.
/// Cost: one pass over the gradients. The ranks see the same averages and decide alike.
class GradientMonitor final : public Callback {
 public:
  explicit GradientMonitor(const GradientMonitorOptions& options = {});

  void on_before_update(const Step& step) override;

  /// Of all gradients together, at the last update; NaN before the first.
  [[nodiscard]] double norm() const { return norm_; }

 private:
  GradientMonitorOptions options_;
  double norm_ = 0;
  int64_t seen_ = 0;
  std::vector<std::string> reported_;
};

}  // namespace argosy::train
