#pragma once

#include <array>
#include <vector>

#include "argosy/optim/optimizer.h"

namespace argosy::optim {

/// Defaults are PyTorch's.
struct AdamOptions {
  double lr = 1e-3;
  std::array<double, 2> betas{0.9, 0.999};  ///< decay of the two averages, each in [0, 1)
  double eps = 1e-8;                        ///< added to the root, not under it
  WeightDecay weight_decay{};               ///< a number means L2Decay
  bool amsgrad = false;
  GradClip grad_clip{};
  DecayFilter apply_decay_param_fun{};  ///< empty: all parameters decay
};

/// Adam.
///
///     m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2
///     w = w - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
///
/// State: step, exp_avg (m), exp_avg_sq (v), with amsgrad max_exp_avg_sq.
/// Source: Kingma & Ba, "Adam", ICLR 2015; torch/optim/adam.py of 2.x, _single_tensor_adam.
/// Errors: UsageError naming the option that is out of range.
class Adam final : public Optimizer {
 public:
  explicit Adam(const engine::NamedTensors& parameters,
                const AdamOptions& options = {},
                const std::vector<ParamGroup>& groups = {});
  template <engine::NamedParameterSource T>
  Adam(const T& model,  // NOLINT(google-explicit-constructor)
       const AdamOptions& options = {},
       const std::vector<ParamGroup>& groups = {})
      : Adam(engine::named_parameters(model), options, groups) {}
};

/// Defaults are PyTorch's.
struct AdamWOptions {
  double lr = 1e-3;
  std::array<double, 2> betas{0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;  ///< decoupled
  bool amsgrad = false;
  GradClip grad_clip{};
  DecayFilter apply_decay_param_fun{};  ///< empty: all parameters decay
};

/// Adam with decoupled weight decay: w *= 1 - lr * weight_decay, then Adam's update.
///
/// The weight_decay of a group is a number; L1Decay and L2Decay are refused (use Adam for them).
/// Source: Loshchilov & Hutter, "Decoupled weight decay regularization", ICLR 2019;
///   torch/optim/adamw.py of 2.x.
class AdamW final : public Optimizer {
 public:
  explicit AdamW(const engine::NamedTensors& parameters,
                 const AdamWOptions& options = {},
                 const std::vector<ParamGroup>& groups = {});
  template <engine::NamedParameterSource T>
  AdamW(const T& model,  // NOLINT(google-explicit-constructor)
        const AdamWOptions& options = {},
        const std::vector<ParamGroup>& groups = {})
      : AdamW(engine::named_parameters(model), options, groups) {}
};

}  // namespace argosy::optim
