#pragma once

#include <limits>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/engine/named.h"

namespace argosy::optim {

/// Scales all gradients by clip_norm / max(global_norm, clip_norm), where global_norm is the norm
/// of all the optimizer's gradients as one vector. Source: Paddle 3.3, paddle/nn/clip.py; Pascanu
/// et al., "On the difficulty of training recurrent neural networks", ICML 2013.
struct ClipGradByGlobalNorm {
  explicit ClipGradByGlobalNorm(double clip_norm) : clip_norm(clip_norm) {}
  double clip_norm;
};

/// Scales each gradient by clip_norm / max(norm, clip_norm) with its own norm. Source: Paddle 3.3.
struct ClipGradByNorm {
  explicit ClipGradByNorm(double clip_norm) : clip_norm(clip_norm) {}
  double clip_norm;
};

/// Limits each element to [-max, max]. Source: Paddle 3.3, whose `min` defaults to -max.
struct ClipGradByValue {
  explicit ClipGradByValue(double max) : max(max) {}
  double max;
};

/// The option `grad_clip` of every optimizer. It acts inside step(), before the weight decay, in
/// the same pass over memory, and leaves the gradients themselves unchanged.
using GradClip =
    std::variant<std::monostate, ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue>;

/// How clip_grad_norm_ measures, and what it does with infinities.
struct ClipNormOptions {
  double norm_type = 2.0;           ///< 2, or infinity for the largest absolute value
  bool error_if_nonfinite = false;  ///< throws a UsageError instead of making NaN gradients
};

/// Scales the gradients of `parameters` in place, so that their common norm is at most `max_norm`,
/// and returns the norm before. Undefined gradients are skipped.
///
///     loss.backward();
///     double norm = optim::clip_grad_norm_(model, 1.0);
///     optimizer.step();
///
/// Norms are summed in double in a fixed order, which gives the same bits with any number of
/// threads.
/// Source: torch.nn.utils.clip_grad_norm_ of 2.x: factor min(1, max_norm / (norm + 1e-6)).
double clip_grad_norm_(const engine::NamedTensors& parameters,
                       double max_norm,
                       const ClipNormOptions& options = {});

/// Limits each element of each gradient to [-max, max], in place. NaN stays.
/// Source: torch.nn.utils.clip_grad_value_.
void clip_grad_value_(const engine::NamedTensors& parameters, double max);

template <engine::NamedParameterSource T>
double clip_grad_norm_(const T& model, double max_norm, const ClipNormOptions& options = {}) {
  return clip_grad_norm_(engine::named_parameters(model), max_norm, options);
}

template <engine::NamedParameterSource T>
void clip_grad_value_(const T& model, double max) {
  clip_grad_value_(engine::named_parameters(model), max);
}

}  // namespace argosy::optim
