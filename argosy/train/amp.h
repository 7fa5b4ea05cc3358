#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "argosy/optim/grad_scaler.h"

namespace argosy::train {

/// Mixed precision of a Model: the network's products and convolutions are computed in `dtype`, by
/// engine::Autocast, in training, evaluation and prediction. Weights, gradients and the optimizer's
/// state stay f32. What the network gives is turned back into f32 before the loss, the metrics and
/// predict() see it (as Accelerate does), so that only the network itself is less exact.
struct AmpOptions {
  /// On the CPU bfloat16 only; see engine::can_autocast().
  at::ScalarType dtype = at::kBFloat16;
  /// Scales the loss and skips the updates whose gradients are not finite. Unset: with float16
  /// the defaults, with bfloat16 none, which has the range of f32.
  std::optional<optim::GradScalerOptions> scaler{};
};

}  // namespace argosy::train
