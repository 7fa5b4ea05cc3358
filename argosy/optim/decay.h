#pragma once

#include <functional>
#include <string>

namespace argosy::optim {

/// Penalty coeff * sum |w|: adds coeff * sign(w) to the gradient.
/// Source: Paddle 3.3, paddle/regularizer.py, L1Decay.
struct L1Decay {
  explicit L1Decay(double coeff) : coeff(coeff) {}
  double coeff;
};

/// Penalty coeff / 2 * sum w^2: adds coeff * w to the gradient.
/// Source: Paddle 3.3, paddle/regularizer.py, L2Decay; the weight_decay of torch.optim.SGD and
/// Adam.
struct L2Decay {
  explicit L2Decay(double coeff) : coeff(coeff) {}
  double coeff;
};

/// A regularizer, or a bare number whose meaning depends on the optimizer. For SGD, Momentum, Adam,
/// RMSProp and Adagrad it is L2Decay; for AdamW it is decoupled decay, w *= 1 - lr * coeff; for
/// Lamb and Lars it is part of the direction whose length is compared with the parameter's.
struct WeightDecay {
  enum class Kind { kNumber, kL1, kL2 };

  WeightDecay() = default;
  WeightDecay(double coeff) : coeff(coeff) {}  // NOLINT: {.weight_decay = 1e-4}
  WeightDecay(L1Decay decay) : kind(Kind::kL1), coeff(decay.coeff) {}  // NOLINT
  WeightDecay(L2Decay decay) : kind(Kind::kL2), coeff(decay.coeff) {}  // NOLINT

  Kind kind = Kind::kNumber;
  double coeff = 0.0;
};
/// Returns "L2 0.01", or the bare number.
[[nodiscard]] std::string in_words(const WeightDecay& decay);

/// Returns whether the parameter of this name decays. `false` switches off the decay of the
/// optimizer and of a ParamGroup for it. Without a function all parameters decay. Called once per
/// parameter, when the optimizer takes it.
///
///     optim::AdamW opt(net, {.apply_decay_param_fun = [](const std::string& name) {
///                              return !name.ends_with(".bias");
///                            }});
///
/// Source: Paddle 3.3, paddle/optimizer/adamw.py, apply_decay_param_fun.
using DecayFilter = std::function<bool(const std::string& name)>;

}  // namespace argosy::optim
