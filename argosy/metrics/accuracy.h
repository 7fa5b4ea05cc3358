#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/metrics/state.h"

namespace argosy::metrics {

struct AccuracyOptions {
  /// A sample is right for k if its label is among the k highest logits. Each k is at least 1.
  std::vector<int64_t> topk = {1};
  /// Samples and positions with this label are not counted. The default is CrossEntropy's.
  int64_t ignore_index = -100;
};

/// The share of samples whose label is among the k highest logits, over all ranks.
///
///     Accuracy accuracy({.topk = {1, 5}});
///     accuracy.update(logits, labels);
///     double top1 = accuracy.compute(group);               // the first k; 0.0 to 1.0
///     std::vector<double> all = accuracy.values(group);    // in the order of .topk
///     accuracy.update(logits_nct, labels_nt);              // sequences: each position counts
///
/// Ranks exchange counts (int64), never ratios, so N ranks give exactly the result of one. In a tie
/// the lower class index ranks higher, as in torch::argmax (torch::topk does not say). NaN ranks
/// above every number, as in both. Without samples the result is NaN.
/// Not thread-safe.
class Accuracy final {
 public:
  explicit Accuracy(AccuracyOptions options = {});

  /// Shape: logits [N, C] or [N, C, d1, …] of any floating type, as CrossEntropy takes them.
  /// Classes are dim 1, so transpose a Transformer's [N, T, C] first. Labels [N] or [N, d1, …], or
  /// Paddle's [N, 1, …], of any integer type. N may be 0. Each position of a sequence counts once.
  /// Errors: UsageError (shape, type, k > C, a label outside [0, C) with its row); then nothing is
  /// counted.
  void update(const at::Tensor& logits, const at::Tensor& labels);

  /// Returns the accuracy for the first k. Collective over `group`; an empty group means this
  /// process alone.
  [[nodiscard]] double compute(const comm::Group& group = {}) const;
  /// Returns the accuracy for each k, in the order of .topk. Collective like compute().
  [[nodiscard]] std::vector<double> values(const comm::Group& group = {}) const;
  /// Returns the number of samples, or positions of sequences, that all ranks counted. Collective
  /// like compute().
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
