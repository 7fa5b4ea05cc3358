#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "argosy/train/callback.h"
#include "argosy/train/logs.h"

namespace argosy::train {

/// Which values of a figure are better. kAuto: larger ones for names with "acc", "auc", "f1",
/// "precision" or "recall", else smaller ones.
enum class MonitorMode { kAuto, kMin, kMax };

namespace detail {

/// Follows one figure and says when it improved. Equal on all ranks, like figures.
class Monitor final {
 public:
  Monitor(std::string name, MonitorMode mode, double min_delta);

  /// Returns the figure of an epoch ("eval_loss", else "loss"). `evaluates`: the training has an
  /// evaluation set; then an epoch without an evaluation has no figure.
  /// Errors: UsageError naming the existing figures.
  [[nodiscard]] std::optional<double> of_epoch(const Logs& logs, bool evaluates) const;
  /// Checks before the first epoch that the training will have the figure.
  /// Errors: UsageError naming those that it will have.
  void check(const Training& training) const;
  /// Returns whether `value` is better than the best one by min_delta, and if so makes it the best
  /// one. NaN never is.
  bool improves(double value);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] double best() const { return best_; }
  void set_best(double best) { best_ = best; }
  [[nodiscard]] bool larger_is_better() const { return larger_; }

 private:
  std::string name_;
  bool larger_;
  double min_delta_;
  double best_;
};

}  // namespace detail

}  // namespace argosy::train
