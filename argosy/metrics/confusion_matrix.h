#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/metrics/state.h"

namespace argosy::metrics {

/// The divisor of the entries of a confusion matrix.
enum class NormalizeBy {
  kNone,       ///< none: the entries are counts
  kTrue,       ///< the row's sum: the diagonal is each class's recall
  kPredicted,  ///< the column's sum: the diagonal is each class's precision
  kAll,        ///< the number of samples
};

struct ConfusionMatrixOptions {
  int64_t num_classes = 0;  ///< required; at least 2
};

/// How often samples of class i (row) were predicted as class j (column), over all ranks.
///
///     ConfusionMatrix confusion({.num_classes = 3});
///     confusion.update(logits, labels);
///     at::Tensor counts = confusion.compute(group);               // i64 [3, 3]
///     fmt::print("{}", confusion.to_string({.group = group, .classes = {"cat", "dog", "owl"}}));
///
/// Counts are exact over ranks. A matrix is no single number: names() and values() are empty, so a
/// trainer's line does not show it.
/// Not thread-safe. Source: sklearn.metrics.confusion_matrix.
class ConfusionMatrix final {
 public:
  explicit ConfusionMatrix(const ConfusionMatrixOptions& options);

  /// Shape: scores [N, C], whose first highest is the prediction (NaN is above every number), or
  /// predicted classes [N] of an integer type; labels [N] or [N, 1]. N may be 0.
  /// Errors: UsageError (shape, type, a class out of range with its row); then nothing is counted.
  void update(const at::Tensor& scores, const at::Tensor& labels);

  /// Returns i64 [C, C]. Collective over `group`; an empty group means this process alone.
  [[nodiscard]] at::Tensor compute(const comm::Group& group = {}) const;
  /// Returns f64 [C, C], with 0 in empty rows or columns. Collective like compute().
  [[nodiscard]] at::Tensor normalized(NormalizeBy by, const comm::Group& group = {}) const;

  /// How to_string() shows the matrix, and over which ranks it is summed.
  struct Shown {
    comm::Group group{};
    std::vector<std::string> classes{};  ///< names; empty: numbers
    NormalizeBy normalize = NormalizeBy::kNone;
  };
  /// Returns a table with one row per true class. Collective like compute().
  /// Errors: UsageError if the number of names is not the number of classes.
  [[nodiscard]] std::string to_string(const Shown& shown) const;
  [[nodiscard]] std::string to_string() const { return to_string(Shown()); }

  [[nodiscard]] std::vector<double> values(const comm::Group& /*group*/ = {}) const { return {}; }
  [[nodiscard]] std::vector<std::string> names() const { return {}; }
  void reset();
  /// See State; num_classes must agree.
  [[nodiscard]] State state() const;
  void load_state(const State& state);
  void merge_state(const State& other);

 private:
  int64_t classes_;
  std::vector<int64_t> counts_;  // row by row
};

}  // namespace argosy::metrics
