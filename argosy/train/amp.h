#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "argosy/optim/grad_scaler.h"

namespace argosy::train {

/// Mixed precision of a Model. engine::Autocast computes the network's products and convolutions in
/// `dtype`, in training, evaluation and prediction. Weights, gradients and the optimizer's state
/// stay f32. Outputs become f32 again before the loss, the metrics and predict() get them, as in
/// Accelerate, so only the network itself is less exact.
struct AmpOptions {
  /// The CPU supports bfloat16 only; see engine::can_autocast().
  at::ScalarType dtype = at::kBFloat16;
  /// Scales the loss and skips updates whose gradients are not finite. Unset: the defaults for
  /// float16, and no scaler for bfloat16, which has the range of f32.
  std::optional<optim::GradScalerOptions> scaler{};
};

}  // namespace argosy::train
