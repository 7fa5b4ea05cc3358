#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/metrics/state.h"

namespace argosy::metrics {

enum class Curve {
  kRoc,  ///< true-positive rate over false-positive rate, by trapezoids
  kPr,   ///< precision over recall, by steps: the average precision, as sklearn advises
};

struct AucOptions {
  Curve curve = Curve::kRoc;
  /// 0 is exact: it keeps the scores, 8 bytes per sample, and twice that while it grows; compute()
  /// brings a copy of all of them to every rank. Any other number makes that many bins plus one, in
  /// constant memory; scores must then be probabilities. Paddle's number is 4095.
  int64_t num_thresholds = 0;
};

/// The area under the curve of a classifier with two classes, over the samples of all ranks.
///
///     Auc auc;                                   // exact
///     auc.update(scores, labels);
///     double area = auc.compute(group);
///     Auc binned({.num_thresholds = 4095});      // paddle.metric.Auc
///
/// Equal scores are one point of the curve. ROC counts pairs in integers and rounds once. N ranks
/// give the bits of one rank, exact or binned. The result is NaN without a positive sample, for ROC
/// also without a negative one (Paddle returns 0), and after a NaN score until reset().
/// Not thread-safe. Source: sklearn.metrics.roc_auc_score and average_precision_score; binned:
/// paddle.metric.Auc of 3.3, which has ROC only.
class Auc final {
 public:
  explicit Auc(const AucOptions& options = {});

  /// Shape: scores [N], [N, 1] or Paddle's [N, 2], of which column 1 counts; labels [N] or [N, 1],
  /// 0 and 1 of any type. Scores may be any numbers, such as logits, unless they are binned.
  /// Errors: UsageError with the row (shape, type, label; binned: a score outside [0, 1]); then
  /// nothing is counted.
  void update(const at::Tensor& scores, const at::Tensor& labels);

  /// Collective over `group`; an empty group means this process alone.
  [[nodiscard]] double compute(const comm::Group& group = {}) const;
  [[nodiscard]] std::vector<double> values(const comm::Group& group = {}) const {
    return {compute(group)};
  }
  [[nodiscard]] std::vector<std::string> names() const { return {"auc"}; }
  void reset();
  /// See State; the options must agree. An exact state has one number per sample.
  [[nodiscard]] State state() const;
  void load_state(const State& state);
  void merge_state(const State& other);

 private:
  AucOptions options_;
  int64_t nans_ = 0;
  std::vector<double> positives_, negatives_;  // exact: the scores
  std::vector<int64_t> positive_, negative_;   // binned: counts, lowest bin first
};

}  // namespace argosy::metrics
