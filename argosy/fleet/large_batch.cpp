#include "argosy/fleet/large_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/optim/flat_optimizer.h"
#include "argosy/optim/lamb.h"
#include "argosy/optim/lars.h"

namespace argosy::fleet::detail {
namespace {

void require(bool condition, const std::string& text) {
  if (!condition) {
    throw ConfigError("fleet.distributed_optimizer", text);
  }
}

/// What the optimizer was made with, if it is one of `rules` and has nothing that would be lost.
optim::FlatSettings checked(const optim::Optimizer& optimizer,
                            std::string_view toggle,
                            std::initializer_list<std::string_view> rules) {
  auto settings = optim::settings_of(*optimizer.impl()).value_or(optim::FlatSettings{});
  require(std::ranges::find(rules, settings.rule) != rules.end(),
          fmt::format("strategy.{} takes the place of {}, got {}. Give distributed_optimizer() "
                      "that, or switch {} off.",
                      toggle,
                      toggle == "lars" ? "optim::Momentum" : "optim::Adam or optim::AdamW",
                      settings.rule.empty() ? "an optimizer of another kind" : settings.rule,
                      toggle));
  require(!settings.numbers.variant,
          fmt::format("strategy.{} knows no {}. Leave it out of the optimizer's options.",
                      toggle,
                      toggle == "lars" ? "nesterov" : "amsgrad"));
  const std::vector<optim::GroupInfo>& groups = optimizer.param_groups();
  for (const optim::GroupInfo& group : groups) {
    // AdamW has a decay by default. A group of it may have none, or that of all.
    const double coeff = group.weight_decay.coeff;
    require(coeff == 0 || (settings.rule == "AdamW" && coeff == groups.front().weight_decay.coeff),
            fmt::format("strategy.{0} has one weight decay of its own: set {0}_configs."
                        "{0}_weight_decay, and leave weight_decay out of the options of the "
                        "optimizer and its groups; 0 in a group of AdamW stays",
                        toggle));
  }
  require(settings.rule != "Momentum" || settings.apply_decay_param_fun == nullptr,
          "strategy.lars takes lars_configs.exclude_from_weight_decay instead of "
          "apply_decay_param_fun");
  require(
      optimizer.state_dict().parameters.empty(),
      fmt::format("strategy.{} takes the place of an optimizer that has made no step yet", toggle));
  return settings;
}

/// A group without weight decay, where the others have one, stays one.
std::vector<optim::ParamGroup> groups_of(const optim::Optimizer& optimizer) {
  std::vector<optim::ParamGroup> out;
  const std::vector<optim::GroupInfo>& groups = optimizer.param_groups();
  for (size_t i = 1; i < groups.size(); ++i) {
    const optim::GroupInfo& info = groups[i];
    optim::ParamGroup group{.lr_scale = info.lr_scale};
    if (info.weight_decay.coeff == 0 && groups.front().weight_decay.coeff != 0) {
      group.weight_decay = optim::WeightDecay(0.0);
    }
    for (const auto& [name, parameter] : optimizer.parameters()) {
      if (std::ranges::find(info.names, name) != info.names.end()) {
        group.params.push_back(parameter);
      }
    }
    out.push_back(std::move(group));
  }
  return out;
}

optim::Optimizer with_rates_of(const optim::Optimizer& optimizer, optim::Optimizer made) {
  for (size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    made.set_group_lr(i, optimizer.param_groups()[i].lr);
  }
  return made;
}

}  // namespace

optim::Optimizer for_large_batches(const optim::Optimizer& optimizer,
                                   const DistributedStrategy& strategy) {
  if (strategy.lars) {
    const optim::FlatSettings settings = checked(optimizer, "lars", {"Momentum"});
    const LarsConfigs& configs = strategy.lars_configs;
    return with_rates_of(
        optimizer,
        optim::Lars(optimizer.parameters(),
                    {.lr = optimizer.lr(),
                     .momentum = settings.numbers.momentum,
                     .lars_coeff = configs.lars_coeff,
                     .weight_decay = configs.lars_weight_decay,
                     .eps = configs.epsilon,
                     .exclude_from_weight_decay = configs.exclude_from_weight_decay,
                     .grad_clip = settings.grad_clip},
                    groups_of(optimizer)));
  }
  if (strategy.lamb) {
    const optim::FlatSettings settings = checked(optimizer, "lamb", {"Adam", "AdamW"});
    const LambConfigs& configs = strategy.lamb_configs;
    const auto excluded = [endings = configs.exclude_from_weight_decay,
                           decays = settings.apply_decay_param_fun](const std::string& name) {
      return (decays != nullptr && !decays(name)) ||
             std::ranges::any_of(endings,
                                 [&](const std::string& ending) { return name.ends_with(ending); });
    };
    return with_rates_of(optimizer,
                         optim::Lamb(optimizer.parameters(),
                                     {.lr = optimizer.lr(),
                                      .betas = settings.numbers.betas,
                                      .eps = settings.numbers.eps,
                                      .weight_decay = configs.lamb_weight_decay,
                                      .exclude_from_weight_decay_fn = excluded,
                                      .grad_clip = settings.grad_clip},
                                     groups_of(optimizer)));
  }
  return optimizer;
}

}  // namespace argosy::fleet::detail
