#pragma once

#include <string>
#include <vector>

#include "argosy/optim/optimizer.h"

namespace argosy::optim {

/// Defaults are Paddle's, except for lr and momentum, which have no defaults there.
struct LarsOptions {
  double lr = 1e-3;
  double momentum = 0.9;
  double lars_coeff = 1e-3;    ///< the trust coefficient, eta of the paper
  double weight_decay = 5e-4;  ///< Paddle: lars_weight_decay
  double eps = 0.0;            ///< added to the denominator
  /// Parameters whose names contain one of these texts have no weight decay.
  std::vector<std::string> exclude_from_weight_decay{};
  GradClip grad_clip{};
};

/// Momentum with a learning rate per parameter:
///
///     local = lr lars_coeff |w| / (|g| + weight_decay |w| + eps)
///     b = momentum b + local (g + weight_decay w)        w = w - b
///
/// `local` is lr, as in Paddle, if a norm is 0 or the parameter has no weight decay. State: step,
/// momentum_buffer (b; Paddle's velocity). The weight_decay of a group is a number. Ranks that
/// share memory do not divide steps; scatter_gradients does.
/// Cost: two passes; the first reads parameter and gradient.
/// Source: You, Gitman & Ginsburg, "Large batch training of convolutional networks", 2017; Paddle
///   3.3, paddle/incubate/optimizer/lars_momentum.py.
/// Errors: UsageError naming the option that is out of range.
class Lars final : public Optimizer {
 public:
  explicit Lars(const engine::NamedTensors& parameters,
                const LarsOptions& options = {},
                const std::vector<ParamGroup>& groups = {});
  template <engine::NamedParameterSource T>
  Lars(const T& model,  // NOLINT(google-explicit-constructor)
       const LarsOptions& options = {},
       const std::vector<ParamGroup>& groups = {})
      : Lars(engine::named_parameters(model), options, groups) {}
};

}  // namespace argosy::optim
