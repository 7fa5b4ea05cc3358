#pragma once

#include <vector>

#include "argosy/optim/optimizer.h"

namespace argosy::optim {

/// Defaults are PyTorch's.
struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0.0;
  double dampening = 0.0;
  WeightDecay weight_decay{};  ///< a number means L2Decay
  bool nesterov = false;       ///< needs momentum > 0 and dampening = 0
  GradClip grad_clip{};
  DecayFilter apply_decay_param_fun{};  ///< empty: all parameters decay
};

/// Stochastic gradient descent, with momentum:
///
///     b = momentum * b + (1 - dampening) * g     (b = g on the first step)
///     w = w - lr * b          nesterov: w = w - lr * (g + momentum * b)
///
/// State: step, with momentum also momentum_buffer (b).
/// Source: torch/optim/sgd.py of 2.x, _single_tensor_sgd; Sutskever et al., ICML 2013.
/// Errors: UsageError naming the option that is out of range.
class SGD final : public Optimizer {
 public:
  explicit SGD(const engine::NamedTensors& parameters,
               const SGDOptions& options = {},
               const std::vector<ParamGroup>& groups = {});
  template <engine::NamedParameterSource T>
  SGD(const T& model,  // NOLINT(google-explicit-constructor)
      const SGDOptions& options = {},
      const std::vector<ParamGroup>& groups = {})
      : SGD(engine::named_parameters(model), options, groups) {}
};

/// Defaults are Paddle's.
struct MomentumOptions {
  double lr = 1e-3;
  double momentum = 0.9;
  bool nesterov = false;
  WeightDecay weight_decay{};  ///< a number means L2Decay
  GradClip grad_clip{};
  DecayFilter apply_decay_param_fun{};  ///< empty: all parameters decay
};

/// SGD with momentum under Paddle's name: its `velocity` is momentum_buffer here.
/// Source: Paddle 3.3, paddle/optimizer/momentum.py.
class Momentum final : public Optimizer {
 public:
  explicit Momentum(const engine::NamedTensors& parameters,
                    const MomentumOptions& options = {},
                    const std::vector<ParamGroup>& groups = {});
  template <engine::NamedParameterSource T>
  Momentum(const T& model,  // NOLINT(google-explicit-constructor)
           const MomentumOptions& options = {},
           const std::vector<ParamGroup>& groups = {})
      : Momentum(engine::named_parameters(model), options, groups) {}
};

}  // namespace argosy::optim
