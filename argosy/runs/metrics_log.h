#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/runs/curve.h"

namespace argosy::runs {

/// One curve of a run: a figure over the steps, in training or evaluation.
struct NamedCurve {
  std::string name{};   ///< "loss", "accuracy", "lr" …
  std::string split{};  ///< "train", "eval" …
  Curve curve{};
};

/// What a run's `metrics.jsonl` says, read piece by piece while it grows:
///
///     MetricsLog log("runs/a/metrics.jsonl");
///     log.read();                    // what is there
///     … later: log.read();           // what came since
///
/// A line is a JSON object. "step" (or "epoch", where no record has a step) is its place on the
/// curves; "split" says what it is of ("train" where absent); every other number, also those in an
/// object "metrics", is a point of the curve of its name; null is a number that was not finite.
/// "time" (seconds since 1970) is kept apart; texts are left. A name that begins with "train_",
/// "eval_", "val_" or "test_" says its split itself.
///
/// Lines that are none are counted and skipped, as is a last one without its end. Not thread-safe.
class MetricsLog final {
 public:
  /// More curves than this are left out: a name made anew for each record would fill the memory.
  static constexpr size_t kMostCurves = 256;

  explicit MetricsLog(std::string path) : path_(std::move(path)) {}

  /// Reads what was added. A file that has become shorter is read anew. True: there was something.
  bool read();

  /// In the order in which their names came first.
  [[nodiscard]] const std::vector<NamedCurve>& curves() const { return curves_; }
  /// nullptr: there is none.
  [[nodiscard]] const NamedCurve* find(std::string_view name, std::string_view split) const;
  /// What the curves are drawn over: "step" or "epoch".
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
