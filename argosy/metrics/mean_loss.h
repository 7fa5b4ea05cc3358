#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/metrics/sum_over_ranks.h"

namespace argosy::metrics {

/// The mean of a loss over all samples of all ranks: Σ loss·n ÷ Σ n.
///
///     MeanLoss loss_mean;
///     loss_mean.update(loss, images.size(0));      // a batch's mean loss and its size
///     double mean = loss_mean.compute(group);      // the same on every rank
///
/// A short last batch therefore has the right weight. The sum is exact (ExactSum), so the result
/// has the same bits for any order of the batches and any distribution over ranks. One NaN loss
/// makes the mean NaN. Without samples it is NaN.
/// Not thread-safe.
class MeanLoss final {
 public:
  /// `loss`: the mean over `n` samples, one element of any floating type, on any device. An empty
  /// batch (n = 0) is ignored, because its mean is NaN.
  /// Blocks: until the value is on the CPU. Errors: UsageError (several elements, negative n).
  void update(const at::Tensor& loss, int64_t n = 1);
  void update(double loss, int64_t n = 1);

  /// Collective over `group`; an empty group means this process alone.
  [[nodiscard]] double compute(const comm::Group& group = {}) const;
  /// Returns the number of samples of all ranks. Collective like compute().
  [[nodiscard]] int64_t count(const comm::Group& group = {}) const;
  void reset();
  /// See State: 72 numbers.
  [[nodiscard]] State state() const;
  void load_state(const State& state);
  void merge_state(const State& other);

 private:
  SumOverRanks sum_;
  int64_t count_ = 0;
};

}  // namespace argosy::metrics
