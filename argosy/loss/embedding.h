#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "argosy/loss/reduction.h"

// Losses of three tensors, for distances to be learnt. They do not fit into Loss, whose call takes
// two.
namespace argosy::loss {

struct CosineEmbeddingOptions {
  double margin = 0;  ///< in [-1, 1]: unlike pairs cost nothing below this cosine
  Reduction reduction = Reduction::kMean;
};

/// 1 - cosine of pairs that are alike (target 1), max(0, cosine - margin) of others (target -1).
///
/// Shape: inputs [N, D], target [N]. The mean divides by N.
/// Errors: UsageError (shape, type). Source: torch.nn.CosineEmbeddingLoss.
class CosineEmbedding final {
 public:
  explicit CosineEmbedding(const CosineEmbeddingOptions& options = {});

  [[nodiscard]] at::Tensor operator()(const at::Tensor& first,
                                      const at::Tensor& second,
                                      const at::Tensor& target) const;
  /// Returns the divisor of the mean; 1 for Reduction::kSum. The same holds for all below.
  [[nodiscard]] double count(const at::Tensor& first,
                             const at::Tensor& second,
                             const at::Tensor& target) const;
  [[nodiscard]] std::string name() const { return "cosine_embedding"; }

 private:
  CosineEmbeddingOptions options_;
};

struct MarginRankingOptions {
  double margin = 0;
  Reduction reduction = Reduction::kMean;
};

/// max(0, -target (first - second) + margin): the first should rank higher if the target is 1, the
/// second if it is -1.
///
/// Shape: all alike. The mean divides by all elements.
/// Errors: UsageError (shape, type). Source: torch.nn.MarginRankingLoss.
class MarginRanking final {
 public:
  explicit MarginRanking(const MarginRankingOptions& options = {}) : options_(options) {}

  [[nodiscard]] at::Tensor operator()(const at::Tensor& first,
                                      const at::Tensor& second,
                                      const at::Tensor& target) const;
  [[nodiscard]] double count(const at::Tensor& first,
                             const at::Tensor& second,
                             const at::Tensor& target) const;
  [[nodiscard]] std::string name() const { return "margin_ranking"; }

 private:
  MarginRankingOptions options_;
};

struct TripletMarginOptions {
  double margin = 1;  ///< above 0
  double p = 2;       ///< of the norm
  double eps = 1e-6;  ///< added to differences
  /// kSwap: the positive replaces the anchor if it is nearer to the negative.
  enum class Swap { kNo, kSwap } swap = Swap::kNo;
  Reduction reduction = Reduction::kMean;
};

/// max(0, |anchor - positive| - |anchor - negative| + margin).
///
/// Shape: all alike, [N, D] or [D]. The mean divides by N.
/// Errors: UsageError (shape, type). Source: torch.nn.TripletMarginLoss.
class TripletMargin final {
 public:
  explicit TripletMargin(const TripletMarginOptions& options = {});

  [[nodiscard]] at::Tensor operator()(const at::Tensor& anchor,
                                      const at::Tensor& positive,
                                      const at::Tensor& negative) const;
  [[nodiscard]] double count(const at::Tensor& anchor,
                             const at::Tensor& positive,
                             const at::Tensor& negative) const;
  [[nodiscard]] std::string name() const { return "triplet_margin"; }

 private:
  TripletMarginOptions options_;
};

}  // namespace argosy::loss
