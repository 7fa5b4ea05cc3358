#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/metrics/state.h"

namespace argosy::metrics {

struct AccuracyOptions {
  /// A sample counts as right for k when its label is among the k highest logits. Each at least 1.
  std::vector<int64_t> topk = {1};
  /// Samples and places with this label are not counted; the default is CrossEntropy's.
  int64_t ignore_index = -100;
};

/// Share of samples whose label is among the k highest logits, over all ranks.
///
///     Accuracy accuracy({.topk = {1, 5}});
///     accuracy.update(logits, labels);
///     double top1 = accuracy.compute(group);               // the first k; 0.0 to 1.0
///     std::vector<double> all = accuracy.values(group);    // in the order of .topk
///     accuracy.update(logits_nct, labels_nt);              // sequences: each place counts
///
/// Ranks exchange counts (int64), never ratios: N ranks give exactly what one gives.
/// Ties: the lower class index ranks higher, as in torch::argmax (torch::topk leaves it open). NaN
/// ranks above every number, as in both. No samples at all: NaN.
/// Not thread-safe.
class Accuracy final {
 public:
  explicit Accuracy(AccuracyOptions options = {});

  /// Shape: logits [N, C] or [N, C, d1, …] (any floating type), as CrossEntropy takes them: classes
  /// stand in dim 1, so a Transformer's [N, T, C] is transposed first. Labels [N] or [N, d1, …]
  /// (any integer type), or Paddle's [N, 1, …]; N may be 0. Each place of a sequence counts as one.
  /// Errors: UsageError (shape, type, k > C, a label outside [0, C) with its row); nothing is
  /// counted then.
  void update(const at::Tensor& logits, const at::Tensor& labels);

  /// The accuracy for the first k. Collective over `group`; an empty group: this process alone.
  [[nodiscard]] double compute(const comm::Group& group = {}) const;
  /// All of them, in the order of .topk. Collective like compute().
  [[nodiscard]] std::vector<double> values(const comm::Group& group = {}) const;
  /// Samples, or places of sequences, that all ranks have counted. Collective like compute().
  [[nodiscard]] int64_t count(const comm::Group& group = {}) const;
  /// Paddle's names: "acc" for topk = {1}, else "acc_top1", "acc_top5".
  [[nodiscard]] std::vector<std::string> names() const;
  void reset();
  /// See State; topk must agree.
  [[nodiscard]] State state() const;
  void load_state(const State& state);
  void merge_state(const State& other);

 private:
  AccuracyOptions options_;
  std::vector<int64_t> right_;  // per entry of topk
  int64_t count_ = 0;
};

}  // namespace argosy::metrics
