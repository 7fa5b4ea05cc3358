#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "argosy/optim/optimizer.h"

namespace argosy::optim {

/// Defaults are Paddle's.
struct LambOptions {
  double lr = 1e-3;
  std::array<double, 2> betas{0.9, 0.999};  ///< decay of the two averages, each in [0, 1)
  double eps = 1e-6;                        ///< added to the root, not under it
  double weight_decay = 1e-2;               ///< Paddle: lamb_weight_decay
  /// Returns true for the name of a parameter without weight decay. Empty: all parameters decay.
  std::function<bool(const std::string& name)> exclude_from_weight_decay_fn{};
  /// Uses the trust ratio for parameters without weight decay too; otherwise they take Adam's step.
  bool always_adapt = false;
  GradClip grad_clip{};
};

/// Adam with a step, decay included, that is as long as the parameter times the learning rate:
///
///     m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2
///     r = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay w
///     w = w - lr |w| / |r| r             the ratio is 1 if a norm is 0
///
/// State: step, exp_avg (m), exp_avg_sq (v). The weight_decay of a group is a number. Ranks that
/// share memory do not divide steps; scatter_gradients does.
/// Cost: two passes; the second reads parameter and averages once more.
/// Source: You et al., "Large batch optimization for deep learning", ICLR 2020; Paddle 3.3,
///   phi/kernels/impl/lamb_kernel_impl.h.
/// Errors: UsageError naming the option that is out of range.
class Lamb final : public Optimizer {
 public:
  explicit Lamb(const engine::NamedTensors& parameters,
                const LambOptions& options = {},
                const std::vector<ParamGroup>& groups = {});
  template <engine::NamedParameterSource T>
  Lamb(const T& model,  // NOLINT(google-explicit-constructor)
       const LambOptions& options = {},
       const std::vector<ParamGroup>& groups = {})
      : Lamb(engine::named_parameters(model), options, groups) {}
};

}  // namespace argosy::optim
