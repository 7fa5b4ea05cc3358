#pragma once

#include <vector>

#include "argosy/optim/optimizer.h"

namespace argosy::optim {

/// Whose formula RMSProp follows. The formulas differ in two places, so no options of one give the
/// numbers of the other.
enum class RMSPropForm {
  /// eps is added to the root, and the learning rate multiplies what comes out of the buffer:
  /// b = momentum b + g / (sqrt(v) + eps), w = w - lr b.
  kTorch,
  /// eps is added under the root, and the learning rate enters the buffer:
  /// b = momentum b + lr g / sqrt(v + eps), w = w - b.
  kPaddle,
};

/// Defaults are PyTorch's. Paddle's: .alpha (rho) = 0.95, .eps = 1e-6, .form = kPaddle.
struct RMSPropOptions {
  double lr = 1e-2;
  double alpha = 0.99;  ///< decay of the averages, in [0, 1]
  double eps = 1e-8;
  WeightDecay weight_decay{};  ///< a number means L2Decay
  double momentum = 0.0;
  bool centered = false;  ///< subtracts the squared average gradient from v: the variance
  RMSPropForm form = RMSPropForm::kTorch;
  GradClip grad_clip{};
  DecayFilter apply_decay_param_fun{};  ///< empty: all parameters decay
};

/// RMSProp: the gradient over the root of its mean square, v = alpha v + (1 - alpha) g^2. See
/// RMSPropForm for the step.
///
/// State: step, square_avg (v); with momentum also momentum_buffer (b); if centered also grad_avg.
/// Source: Tieleman & Hinton, lecture 6.5, 2012; torch/optim/rmsprop.py of 2.x,
///   _single_tensor_rmsprop; Paddle 3.3, phi/kernels/impl/rmsprop_kernel_impl.h.
/// Errors: UsageError naming the option that is out of range.
class RMSProp final : public Optimizer {
 public:
  explicit RMSProp(const engine::NamedTensors& parameters,
                   const RMSPropOptions& options = {},
                   const std::vector<ParamGroup>& groups = {});
  template <engine::NamedParameterSource T>
  RMSProp(const T& model,  // NOLINT(google-explicit-constructor)
          const RMSPropOptions& options = {},
          const std::vector<ParamGroup>& groups = {})
      : RMSProp(engine::named_parameters(model), options, groups) {}
};

}  // namespace argosy::optim
