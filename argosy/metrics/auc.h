#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/metrics/state.h"

namespace argosy::metrics {

enum class Curve {
  kRoc,  ///< true-positive rate over false-positive rate, trapezoids
  kPr,   ///< precision over recall as steps: the average precision, sklearn's advice
};

struct AucOptions {
  Curve curve = Curve::kRoc;
  /// 0: exact, over the scores themselves: 8 bytes a sample, all of them on every rank in
  /// compute(). Otherwise scores are probabilities and fall into this many bins and one more, in
  /// constant memory; Paddle's is 4095.
  int64_t num_thresholds = 0;
};

/// Area under a curve of a classifier of two classes, over the samples of all ranks.
///
///     Auc auc;                                   // exact
///     auc.update(scores, labels);
///     double area = auc.compute(group);
///     Auc binned({.num_thresholds = 4095});      // paddle.metric.Auc
///
/// Equal scores are one point of the curve. ROC counts pairs in integers and rounds once; N ranks
/// give the bits of one in both ways. NaN: without a positive or (ROC) without a negative sample,
/// where Paddle says 0, and after a NaN score until reset().
/// Not thread-safe. Source: sklearn.metrics.roc_auc_score and average_precision_score; binned:
/// paddle.metric.Auc of 3.3, which knows ROC only.
class Auc final {
 public:
  explicit Auc(const AucOptions& options = {});

  /// Shape: scores [N], [N, 1] or Paddle's [N, 2], whose column 1 counts; labels [N] or [N, 1], 0
  /// and 1 of any type. Exact: scores are any numbers, logits too.
  /// Errors: UsageError (shape, type, label, binned: a score outside [0, 1]) with the row; nothing
  /// is counted then.
  void update(const at::Tensor& scores, const at::Tensor& labels);

  /// Collective over `group`; an empty group: this process alone.
  [[nodiscard]] double compute(const comm::Group& group = {}) const;
  [[nodiscard]] std::vector<double> values(const comm::Group& group = {}) const {
    return {compute(group)};
  }
  [[nodiscard]] std::vector<std::string> names() const { return {"auc"}; }
  void reset();
  /// See State; options must agree. Exact: one number for each sample.
  [[nodiscard]] State state() const;
  void load_state(const State& state);
  void merge_state(const State& other);

 private:
  AucOptions options_;
  int64_t nans_ = 0;
  std::vector<double> positives_, negatives_;  // exact: the scores
  std::vector<int64_t> positive_, negative_;   // binned: how many, lowest bin first
};

}  // namespace argosy::metrics
