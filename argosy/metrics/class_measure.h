#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/metrics/state.h"

// Precision, recall and F1.
namespace argosy::metrics {

/// How the values of the classes become one.
enum class Average {
  kMacro,     ///< their mean, without classes that neither occur nor are predicted
  kMicro,     ///< counted over all classes together; equals the accuracy
  kWeighted,  ///< their mean, weighted by how often each class occurs
  kNone,      ///< values() has one value per class
};

struct ClassMeasureOptions {
  /// 0 means two classes and one score per sample. Otherwise at least 2, with a row of scores per
  /// sample.
  int64_t num_classes = 0;
  /// Two classes: scores from this value on are positive. Use 0.5 for probabilities, 0 for logits.
  double threshold = 0.5;
  Average average = Average::kMacro;  ///< with num_classes
};

enum class Measure { kPrecision, kRecall, kF1 };

/// Precision, recall or F1 over the samples of all ranks.
///
///     Precision precision;                                  // probabilities [N], labels 0 and 1
///     Recall recall({.num_classes = 10});                   // logits [N, 10], labels 0 to 9
///     recall.update(logits, labels);
///     double value = recall.compute(group);
///
///     precision = right / predicted      recall = right / occurring
///     F1 = 2 right / (predicted + occurring)
///
/// are counted for the positive class, or for each class. 0/0 is 0, as in sklearn; without any
/// sample the result is NaN. Ranks exchange counts, so N ranks give exactly the result of one. In a
/// tie of logits the lower class wins, and NaN ranks above every number, as in Accuracy. With two
/// classes, a NaN score makes the result NaN until reset().
/// Not thread-safe. Source: sklearn.metrics.precision_recall_fscore_support (zero_division = 0); a
/// score equal to the threshold is positive as in Paddle.
template <Measure M>
class ClassMeasure final {
 public:
  explicit ClassMeasure(const ClassMeasureOptions& options = {});

  /// Shape: with two classes scores and labels [N] or [N, 1], labels 0 and 1 of any type; else
  /// logits [N, C] and labels [N] or [N, 1] of any integer type. N may be 0.
  /// Errors: UsageError (shape, type, a label out of range with its row); then nothing is counted.
  void update(const at::Tensor& scores, const at::Tensor& labels);

  /// Returns the measure; with Average::kNone, the macro mean. Collective over `group`; an empty
  /// group means this process alone.
  [[nodiscard]] double compute(const comm::Group& group = {}) const;
  /// Returns one value, or with Average::kNone one per class. Collective like compute().
  [[nodiscard]] std::vector<double> values(const comm::Group& group = {}) const;
  /// "precision", or with Average::kNone "precision_0" and so on.
  [[nodiscard]] std::vector<std::string> names() const;
  void reset();
  /// See State; num_classes and threshold must agree.
  [[nodiscard]] State state() const;
  void load_state(const State& state);
  void merge_state(const State& other);

 private:
  [[nodiscard]] std::vector<int64_t> counts_of_all(const comm::Group& group) const;

  ClassMeasureOptions options_;
  // Right, predicted and occurring of each class (two classes: of the positive one); samples; NaNs.
  std::vector<int64_t> counts_;
};

using Precision = ClassMeasure<Measure::kPrecision>;
using Recall = ClassMeasure<Measure::kRecall>;
using F1 = ClassMeasure<Measure::kF1>;

extern template class ClassMeasure<Measure::kPrecision>;
extern template class ClassMeasure<Measure::kRecall>;
extern template class ClassMeasure<Measure::kF1>;

}  // namespace argosy::metrics
