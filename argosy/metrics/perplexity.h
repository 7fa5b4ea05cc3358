#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/metrics/mean_loss.h"
#include "argosy/metrics/state.h"

namespace argosy::metrics {

struct PerplexityOptions {
  int64_t ignore_index = -100;  ///< targets that do not count
};

/// How surprised a language model is: e to the mean cross entropy over all tokens of all ranks. A
/// model that guesses among K tokens evenly has K.
///
///     Perplexity perplexity;
///     perplexity.update(logits_nkv, targets_nk);
///     double value = perplexity.compute(group);    // the same on every rank
///
/// The losses of tokens are computed in f64 and summed without rounding (ExactSum), so the result
/// has the same bits for any order of the batches and any distribution over ranks. One NaN makes it
/// NaN. Without tokens it is NaN.
/// Not thread-safe. Source: torcheval.metrics.Perplexity.
class Perplexity final {
 public:
  explicit Perplexity(const PerplexityOptions& options = {}) : options_(options) {}

  /// `output`: logits [..., V] of any floating type for targets [...], which are of int64; or, of a
  /// model that computes its loss itself, the mean cross entropy of the targets that count, as one
  /// number.
  /// Blocks: until the values are on the CPU.
  /// Errors: UsageError for other shapes or types, and for a target outside of 0 to V - 1.
  void update(const at::Tensor& output, const at::Tensor& targets);

  /// Collective over `group`; an empty group means this process alone.
  [[nodiscard]] double compute(const comm::Group& group = {}) const;
  [[nodiscard]] std::vector<double> values(const comm::Group& group = {}) const {
    return {compute(group)};
  }
  /// Returns the number of tokens of all ranks that count. Collective like compute().
  [[nodiscard]] int64_t count(const comm::Group& group = {}) const { return loss_.count(group); }
  [[nodiscard]] std::vector<std::string> names() const { return {"perplexity"}; }
  void reset() { loss_.reset(); }
  /// See State: the number to ignore, then those of MeanLoss.
  [[nodiscard]] State state() const;
  void load_state(const State& state);
  void merge_state(const State& other);

 private:
  [[nodiscard]] MeanLoss loss_of(const State& state) const;

  PerplexityOptions options_;
  MeanLoss loss_{};
};

}  // namespace argosy::metrics
