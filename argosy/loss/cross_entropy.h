#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "argosy/loss/reduction.h"

// Losses of classification: C classes, one of them right.
namespace argosy::loss {

/// Defaults are PyTorch's.
struct CrossEntropyOptions {
  at::Tensor weight{};          ///< [C], one factor for each class; undefined: all 1
  double label_smoothing = 0;   ///< in [0, 1]: this share of each target is spread over all classes
  int64_t ignore_index = -100;  ///< samples with this label do not count
  Reduction reduction = Reduction::kMean;
};

/// Softmax and negative log likelihood in one.
///
///     loss::CrossEntropy loss({.label_smoothing = 0.1});
///     at::Tensor value = loss(logits, labels);     // 0-dim
///     value.backward();
///
/// Shape: logits [N, C] or [N, C, d1, …]; targets: classes [N] or [N, d1, …] of an integer type, or
/// Paddle's [N, 1, …]; or probabilities, floating and shaped as the logits.
/// The mean divides by the samples that are not ignored; with weights by the sum of the weights of
/// their labels; for probabilities by N·d1·….
/// Cost: checks shapes and types only. It looks for a label out of range only after libtorch
/// reports one. On CUDA libtorch reports it by a failed assertion on the device, which ends the
/// process.
/// Errors: UsageError (shape, type, a label out of range with its sample and the number of
/// classes).
/// Source: torch.nn.CrossEntropyLoss 2.15; libtorch 1.13's values are the same.
class CrossEntropy final {
 public:
  explicit CrossEntropy(CrossEntropyOptions options = {});

  [[nodiscard]] at::Tensor operator()(const at::Tensor& logits, const at::Tensor& target) const;
  /// Returns the divisor of the mean, 1 for Reduction::kSum. Over batches and ranks the mean is Σ
  /// loss·count ÷ Σ count. Waits for the targets' device.
  [[nodiscard]] double count(const at::Tensor& logits, const at::Tensor& target) const;
  /// The same as a 0-dim tensor of f64; does not wait.
  [[nodiscard]] at::Tensor counted(const at::Tensor& logits, const at::Tensor& target) const;
  [[nodiscard]] std::string name() const { return "cross_entropy"; }
  /// Returns the options that are not at their defaults, for records of a run:
  /// "label_smoothing=0.1".
  [[nodiscard]] std::string parameters() const;

 private:
  CrossEntropyOptions options_;
};

/// Defaults are PyTorch's.
struct NllOptions {
  at::Tensor weight{};  ///< as CrossEntropyOptions'
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::kMean;
};

/// Negative log likelihood: CrossEntropy of outputs that are log-probabilities already.
/// Source: torch.nn.NLLLoss.
class NLL final {
 public:
  explicit NLL(NllOptions options = {});

  /// Shape: as CrossEntropy, classes only.
  [[nodiscard]] at::Tensor operator()(const at::Tensor& log_probabilities,
                                      const at::Tensor& target) const;
  [[nodiscard]] double count(const at::Tensor& log_probabilities, const at::Tensor& target) const;
  [[nodiscard]] at::Tensor counted(const at::Tensor& log_probabilities,
                                   const at::Tensor& target) const;
  [[nodiscard]] std::string name() const { return "nll"; }
  [[nodiscard]] std::string parameters() const;

 private:
  NllOptions options_;
};

}  // namespace argosy::loss
