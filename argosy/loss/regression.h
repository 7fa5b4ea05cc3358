#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "argosy/loss/reduction.h"

// Losses of regression. All of them:
//
//     loss::SmoothL1 loss({.beta = 0.5});
//     at::Tensor value = loss(output, target);     // 0-dim
//
// Shape: output and target alike, any; floating point. The mean divides by all elements.
// Errors: UsageError for shapes that differ ([N, 1] beside [N] would be broadcast to [N, N]) and
// for integers.
namespace argosy::loss {

struct MseOptions {
  Reduction reduction = Reduction::kMean;
};

/// (output - target)². Source: torch.nn.MSELoss.
class MSE final {
 public:
  explicit MSE(const MseOptions& options = {}) : options_(options) {}

  [[nodiscard]] at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) const;
  /// Returns the divisor of the mean; 1 for Reduction::kSum. The same holds for all below.
  [[nodiscard]] double count(const at::Tensor& output, const at::Tensor& target) const;
  [[nodiscard]] std::string name() const { return "mse"; }
  /// Returns the options that are not at their defaults, for records of a run. The same holds for
  /// all below.
  [[nodiscard]] std::string parameters() const;

 private:
  MseOptions options_;
};

struct L1Options {
  Reduction reduction = Reduction::kMean;
};

/// |output - target|. Source: torch.nn.L1Loss.
class L1 final {
 public:
  explicit L1(const L1Options& options = {}) : options_(options) {}

  [[nodiscard]] at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) const;
  [[nodiscard]] double count(const at::Tensor& output, const at::Tensor& target) const;
  [[nodiscard]] std::string name() const { return "l1"; }
  [[nodiscard]] std::string parameters() const;

 private:
  L1Options options_;
};

struct SmoothL1Options {
  double beta = 1;  ///< at least 0: from this error on it is linear
  Reduction reduction = Reduction::kMean;
};

/// d² / (2 beta) where d = |output - target| is below beta, else d - beta / 2.
/// Source: torch.nn.SmoothL1Loss; paddle.nn.SmoothL1Loss is Huber.
class SmoothL1 final {
 public:
  explicit SmoothL1(const SmoothL1Options& options = {});

  [[nodiscard]] at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) const;
  [[nodiscard]] double count(const at::Tensor& output, const at::Tensor& target) const;
  [[nodiscard]] std::string name() const { return "smooth_l1"; }
  [[nodiscard]] std::string parameters() const;

 private:
  SmoothL1Options options_;
};

struct HuberOptions {
  double delta = 1;  ///< above 0: from this error on it is linear
  Reduction reduction = Reduction::kMean;
};

/// d² / 2 where d = |output - target| is below delta, else delta (d - delta / 2).
/// Source: torch.nn.HuberLoss.
class Huber final {
 public:
  explicit Huber(const HuberOptions& options = {});

  [[nodiscard]] at::Tensor operator()(const at::Tensor& output, const at::Tensor& target) const;
  [[nodiscard]] double count(const at::Tensor& output, const at::Tensor& target) const;
  [[nodiscard]] std::string name() const { return "huber"; }
  [[nodiscard]] std::string parameters() const;

 private:
  HuberOptions options_;
};

}  // namespace argosy::loss
