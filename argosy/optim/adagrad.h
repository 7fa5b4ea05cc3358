#pragma once

#include <vector>

#include "argosy/optim/optimizer.h"

namespace argosy::optim {

/// Defaults are PyTorch's. Paddle's eps is 1e-6.
struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0.0;                   ///< the rate of step t is lr / (1 + (t - 1) lr_decay)
  WeightDecay weight_decay{};              ///< a number means L2Decay
  double initial_accumulator_value = 0.0;  ///< initial value of the sum
  double eps = 1e-10;                      ///< added to the root, not under it
  GradClip grad_clip{};
  DecayFilter apply_decay_param_fun{};  ///< empty: all parameters decay
};

/// Adagrad: s = s + g^2, w = w - lr g / (sqrt(s) + eps).
///
/// State: step, sum (s).
/// Source: Duchi, Hazan & Singer, JMLR 12, 2011; torch/optim/adagrad.py of 2.x,
///   _single_tensor_adagrad. Paddle's is the same without lr_decay.
/// Errors: UsageError naming the option that is out of range.
class Adagrad final : public Optimizer {
 public:
  explicit Adagrad(const engine::NamedTensors& parameters,
                   const AdagradOptions& options = {},
                   const std::vector<ParamGroup>& groups = {});
  template <engine::NamedParameterSource T>
  Adagrad(const T& model,  // NOLINT(google-explicit-constructor)
          const AdagradOptions& options = {},
          const std::vector<ParamGroup>& groups = {})
      : Adagrad(engine::named_parameters(model), options, groups) {}
};

}  // namespace argosy::optim
