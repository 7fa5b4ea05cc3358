#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/runs/curve.h"

namespace argosy::runs {

/// One curve of a run: a figure by step, in training or evaluation.
struct NamedCurve {
  std::string name{};   ///< "loss", "accuracy", "lr" …
  std::string split{};  ///< "train", "eval" …
  BoundedCurve curve{};
};

/// Reads a run's `metrics.jsonl` piece by piece while it grows:
///
///     MetricsLog log("runs/a/metrics.jsonl");
///     log.read();                    // all lines so far
///     … later: log.read();           // new lines
///
/// A line is a JSON object. "step" is its place on the curves, or "epoch" if no record has a step.
/// "split" names the split ("train" by default). Every other number, also in an object "metrics",
/// is a point of the curve with its name; null is a number that was not finite. "time" (seconds
/// since 1970) is no curve, and texts are ignored. A name that begins with "train_", "eval_",
/// "val_" or "test_" names its split.
///
/// Invalid lines are counted and skipped, and so is a last line without its end. Not thread-safe.
class MetricsLog final {
 public:
  /// Further curves are left out, because a new name in each record would fill the memory.
  static constexpr size_t kMostCurves = 256;

  explicit MetricsLog(std::string path) : path_(std::move(path)) {}

  /// Reads what was added, and returns true if there was something. A file that became shorter is
  /// read from its beginning.
  bool read();

  /// In the order in which their names first appeared.
  [[nodiscard]] const std::vector<NamedCurve>& curves() const { return curves_; }
  /// Returns nullptr if there is no such curve.
  [[nodiscard]] const NamedCurve* find(std::string_view name, std::string_view split) const;
  /// The x axis of the curves: "step" or "epoch".
  [[nodiscard]] const char* axis() const { return by_step_ ? "step" : "epoch"; }
  [[nodiscard]] double last_epoch() const { return epoch_; }  ///< -1: none was said
  [[nodiscard]] double last_step() const { return step_; }    ///< -1: none was said
  [[nodiscard]] int64_t records() const { return records_; }
  [[nodiscard]] int64_t bad_lines() const { return bad_lines_; }

 private:
  void forget();
  void take_line(std::string_view line);
  void add(std::string name, std::string split, double x, double y);

  std::string path_;
  int64_t offset_ = 0;
  std::string rest_{};     // the beginning of a line
  bool skipping_ = false;  // the rest of a line that is too long
  std::vector<NamedCurve> curves_{};
  bool by_step_ = false;
  double step_ = -1;
  double epoch_ = -1;
  int64_t records_ = 0;
  int64_t bad_lines_ = 0;
};

}  // namespace argosy::runs
