#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argosy/optim/optimizer.h"
#include "argosy/optim/rule.h"

namespace argosy::optim {

/// Options that every rule shares.
struct CommonOptions {
  double lr = 0;
  WeightDecay weight_decay{};
  GradClip grad_clip{};
  DecayFilter apply_decay_param_fun{};
};

template <typename Options>
[[nodiscard]] CommonOptions common(const Options& options) {
  return {.lr = options.lr,
          .weight_decay = options.weight_decay,
          .grad_clip = options.grad_clip,
          .apply_decay_param_fun = options.apply_decay_param_fun};
}

/// The optimizer that runs `rule` over the parameters' own memory. Behind SGD, Momentum, Adam,
/// AdamW, RMSProp, Adagrad, Lamb, Lars.
[[nodiscard]] std::shared_ptr<OptimizerImpl> make_flat_optimizer(
    std::unique_ptr<const Rule> rule,
    const engine::NamedTensors& parameters,
    const CommonOptions& options,
    const std::vector<ParamGroup>& groups);

/// The settings of an optimizer by make_flat_optimizer(), beside its groups.
struct FlatSettings {
  std::string rule{};  ///< "Momentum"
  RuleNumbers numbers{};
  GradClip grad_clip{};
  DecayFilter apply_decay_param_fun{};
  std::shared_ptr<const Rule> formula{};
  std::vector<WeightDecay> decays{};  ///< of each parameter
};
/// Returns nullopt for another optimizer.
[[nodiscard]] std::optional<FlatSettings> settings_of(const OptimizerImpl& optimizer);

}  // namespace argosy::optim
