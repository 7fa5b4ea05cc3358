#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/metrics/state.h"

namespace argosy::metrics {

/// What the entries of a confusion matrix are divided by.
enum class Normalise {
  kNone,       ///< nothing: counts
  kTrue,       ///< their row: the diagonal is each class's recall
  kPredicted,  ///< their column: the diagonal is each class's precision
  kAll,        ///< all samples
};

struct ConfusionMatrixOptions {
  int64_t num_classes = 0;  ///< at least 2; must be given
};

/// How often samples of class i (rows) were taken for class j (columns), over all ranks.
///
///     ConfusionMatrix confusion({.num_classes = 3});
///     confusion.update(logits, labels);
///     at::Tensor counts = confusion.compute(group);               // i64 [3, 3]
///     fmt::print("{}", confusion.to_string({.group = group, .classes = {"cat", "dog", "owl"}}));
///
/// Counts are exact over ranks. It is no single number: names() and values() are empty, so that a
/// trainer's line shows none.
/// Not thread-safe. Source: sklearn.metrics.confusion_matrix.
class ConfusionMatrix final {
 public:
  explicit ConfusionMatrix(const ConfusionMatrixOptions& options);

  /// Shape: scores [N, C] (the first highest counts; NaN above every number), or predicted classes
  /// [N] of an integer type; labels [N] or [N, 1]. N may be 0.
  /// Errors: UsageError (shape, type, a class out of range with its row); nothing is counted then.
  void update(const at::Tensor& scores, const at::Tensor& labels);

  /// Shape: i64 [C, C]. Collective over `group`; an empty group: this process alone.
  [[nodiscard]] at::Tensor compute(const comm::Group& group = {}) const;
  /// Shape: f64 [C, C]; 0 where a row or column is empty. Collective like compute().
  [[nodiscard]] at::Tensor normalised(Normalise by, const comm::Group& group = {}) const;

  struct Shown {
    comm::Group group{};
    std::vector<std::string> classes{};  ///< names; else numbers
    Normalise normalise = Normalise::kNone;
  };
  /// A table with a row for each true class. Collective like compute().
  /// Errors: UsageError when there are not as many names as classes.
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
