#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "argosy/train/callback.h"
#include "argosy/train/logs.h"

namespace argosy::train {

/// What better means for a figure. kAuto: larger for names with "acc", "auc", "f1", "precision" or
/// "recall", smaller for others.
enum class MonitorMode { kAuto, kMin, kMax };

namespace detail {

/// Follows one figure and says when it got better. Equal on all ranks, as figures are.
class Monitor final {
 public:
  Monitor(std::string name, MonitorMode mode, double min_delta);

  /// The figure of an epoch ("eval_loss", else "loss"). Empty: `evaluates`, that is the training
  /// has an evaluation set, and this epoch was not evaluated. Errors: UsageError naming the figures
  /// that are there.
  [[nodiscard]] std::optional<double> of_epoch(const Logs& logs, bool evaluates) const;
  /// Before the first epoch: whether a training can have the figure.
  /// Errors: UsageError naming those that it will have.
  void check(const Training& training) const;
  /// Whether `value` is better than the best one by min_delta; then it is the best one. NaN never
  /// is.
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
