#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <ATen/core/Tensor.h>

#include "argosy/metrics/auc.h"
#include "argosy/recommend/click_ids.h"
#include "argosy/recommend/click_model.h"

namespace argosy::recommend {

/// How well log odds tell clicks from what was not clicked.
class ClickScores final {
 public:
  /// Shape: odds and clicked f32 [n].
  void add(const at::Tensor& odds, const at::Tensor& clicked);

  [[nodiscard]] int64_t lines() const { return lines_; }
  /// Exact, by the ranks of all scores; see metrics::Auc. It keeps 8 bytes a line,
  /// and needs up to 24 at its peak.
  [[nodiscard]] double auc() const { return auc_.compute(); }
  /// Returns the mean of −log of the probability that was given to what came. NaN without a line.
  [[nodiscard]] double log_loss() const { return loss_sum_ / static_cast<double>(lines_); }

 private:
  metrics::Auc auc_{};
  double loss_sum_ = 0;
  int64_t lines_ = 0;
};

/// A log of clicks to be scored.
struct ClickLog {
  std::string path{};
  int64_t batch_size = 4096;  ///< lines that are read at once
  int64_t limit = 0;          ///< the first lines only; 0: all
};

/// Computes the log odds of all lines of a log, batch by batch, and calls `use` with each batch and
/// its odds, f32 [n]. Computes no gradients. Returns the number of lines.
/// Errors: those of CriteoReader and Embedding.
int64_t for_each_odds(
    ClickModelImpl& model,
    const ClickLog& log,
    const std::function<void(
        const formats::ClickBatch& batch, const ClickInputs& inputs, const at::Tensor& odds)>& use);

/// Returns the scores of a model on a whole log.
[[nodiscard]] ClickScores scores_on(ClickModelImpl& model, const ClickLog& log);

}  // namespace argosy::recommend
