#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "argosy/loss/reduction.h"

// Losses between probabilities. Shape: output and target alike, any; floating point. Errors:
// UsageError for shapes that differ, for integers and for weights that do not fit.
namespace argosy::loss {

struct BceOptions {
  at::Tensor weight{};  ///< a factor for each element, broadcast to the output; undefined: 1
  Reduction reduction = Reduction::kMean;
};

/// Binary cross entropy of probabilities; BCEWithLogits is safer. The mean divides by all elements.
/// Errors: also UsageError for outputs outside of [0, 1].
/// Source: torch.nn.BCELoss, whose logarithms end at -100.
class BCE final {
 public:
  explicit BCE(BceOptions options = {});

  [[nodiscard]] at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) const;
  /// Returns the divisor of the mean; 1 for Reduction::kSum. The same holds for all below.
  [[nodiscard]] double count(const at::Tensor& output, const at::Tensor& target) const;
  [[nodiscard]] std::string name() const { return "bce"; }
  /// Returns the options that are not at their defaults, for records of a run. The same holds for
  /// all below.
  [[nodiscard]] std::string parameters() const;

 private:
  BceOptions options_;
};

struct BceWithLogitsOptions {
  at::Tensor weight{};      ///< a factor for each element, broadcast to the output; undefined: 1
  at::Tensor pos_weight{};  ///< a factor for the positive part, broadcast likewise; undefined: 1
  Reduction reduction = Reduction::kMean;
};

/// Sigmoid and binary cross entropy in one:
///
///     loss::BCEWithLogits loss({.pos_weight = negatives / positives});
///
/// The mean divides by all elements. Source: torch.nn.BCEWithLogitsLoss.
class BCEWithLogits final {
 public:
  explicit BCEWithLogits(BceWithLogitsOptions options = {});

  [[nodiscard]] at::Tensor operator()(const at::Tensor& logits, const at::Tensor& target) const;
  [[nodiscard]] double count(const at::Tensor& logits, const at::Tensor& target) const;
  [[nodiscard]] std::string name() const { return "bce_with_logits"; }
  [[nodiscard]] std::string parameters() const;

 private:
  BceWithLogitsOptions options_;
};

/// The kind of KLDiv's targets.
enum class KLTarget { kProbabilities, kLogProbabilities };
enum class KLReduction {
  kMean,       ///< over all elements, as PyTorch's default
  kBatchMean,  ///< over the samples: the mathematical one
  kSum,
  kNone,
};

struct KLDivOptions {
  KLTarget target = KLTarget::kProbabilities;
  KLReduction reduction = KLReduction::kMean;
};

/// Kullback-Leibler divergence: target · (log target - output), outputs being log-probabilities.
/// Source: torch.nn.KLDivLoss.
class KLDiv final {
 public:
  explicit KLDiv(const KLDivOptions& options = {}) : options_(options) {}

  [[nodiscard]] at::Tensor operator()(const at::Tensor& log_probabilities,
                                      const at::Tensor& target) const;
  [[nodiscard]] double count(const at::Tensor& log_probabilities, const at::Tensor& target) const;
  [[nodiscard]] std::string name() const { return "kl_div"; }
  [[nodiscard]] std::string parameters() const;

 private:
  KLDivOptions options_;
};

}  // namespace argosy::loss
