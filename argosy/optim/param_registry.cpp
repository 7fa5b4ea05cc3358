#include "argosy/optim/param_registry.h"

#include <cmath>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/engine/coming_memory.h"
#include "argosy/optim/assign_groups.h"
#include "argosy/optim/flat_view.h"

namespace argosy::optim {

ParamRegistry::ParamRegistry(const Rule& rule,
                             std::string where,
                             const CommonOptions& options,
                             const engine::NamedTensors& parameters,
                             const std::vector<ParamGroup>& groups)
    : rule_(rule),
      where_(std::move(where)),
      lr_(options.lr),
      weight_decay_(options.weight_decay),
      decays_at_all_(options.apply_decay_param_fun) {
  check_lr(options.lr);
  rule_.check_decay(options.weight_decay);
  ARGOSY_CHECK(!parameters.empty(), where_, "there are no parameters to optimize");
  groups_.push_back(group_info({}));
  for (const ParamGroup& group : groups) {
    groups_.push_back(group_info(group));
  }
  const std::vector<std::size_t> chosen = assign_groups(where_, parameters, groups);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    add(parameters[i].first, parameters[i].second, chosen[i]);
  }
}

std::optional<std::size_t> ParamRegistry::find(const at::Tensor& parameter) const {
  const auto found = places_.find(parameter.unsafeGetTensorImpl());
  return found == places_.end() ? std::nullopt : std::optional<std::size_t>(found->second);
}

void ParamRegistry::set_lr(std::size_t group, double lr) {
  ARGOSY_CHECK(group < groups_.size(),
               where_,
               "group {} does not exist: there are {}",
               group,
               groups_.size());
  check_lr(lr);
  groups_[group].lr = lr;
}

void ParamRegistry::take_over_lr(const std::vector<GroupInfo>& groups) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups_[i].lr = groups[i].lr;
  }
}

void ParamRegistry::add_group(const engine::NamedTensors& parameters, const ParamGroup& group) {
  ARGOSY_CHECK(group.names.empty() && group.params.empty(),
               where_,
               "add_param_group takes its parameters from its first argument. Leave names and "
               "params empty.");
  const GroupInfo info = group_info(group);
  std::unordered_set<std::string> names;
  for (const auto& [name, parameter] : parameters) {
    check_new(name, parameter);
    ARGOSY_CHECK(names.insert(name).second, where_, "{}: two parameters have this name", name);
    ARGOSY_CHECK(!find(parameter).has_value(),
                 where_,
                 "{}: the optimizer has this parameter already, under another name",
                 name);
  }
  groups_.push_back(info);
  for (const auto& [name, parameter] : parameters) {
    add(name, parameter, groups_.size() - 1);
  }
}

void ParamRegistry::check_lr(double lr) const {
  ARGOSY_CHECK(std::isfinite(lr) && lr >= 0, where_, "lr must be a number >= 0, got {}", lr);
}

GroupInfo ParamRegistry::group_info(const ParamGroup& group) const {
  GroupInfo info;
  info.weight_decay = group.weight_decay.value_or(weight_decay_);
  rule_.check_decay(info.weight_decay);
  if (group.lr) {
    check_lr(*group.lr);
    ARGOSY_CHECK(group.lr_scale == 1.0, where_, "a group has lr or lr_scale, not both");
    ARGOSY_CHECK(lr_ > 0 || *group.lr == 0,
                 where_,
                 "a group's lr wants the optimizer's lr > 0, which set_lr() keeps it in proportion "
                 "to, got 0");
    info.lr = *group.lr;
    info.lr_scale = lr_ > 0 ? *group.lr / lr_ : 1.0;
  } else {
    check_lr(group.lr_scale);
    info.lr_scale = group.lr_scale;
    info.lr = lr_ * group.lr_scale;
  }
  return info;
}

// Errors: UsageError unless this parameter can be added under this name.
void ParamRegistry::check_new(const std::string& name, const at::Tensor& parameter) const {
  ARGOSY_CHECK(parameter.defined(), where_, "{}: the parameter is undefined", name);
  // Divided ones may be rounded from a master, and frozen ones are not updated.
  const bool is_frozen_short =
      !parameter.requires_grad() &&
      (parameter.scalar_type() == at::kBFloat16 || parameter.scalar_type() == at::kHalf);
  if (engine::coming_memory_of(parameter) == nullptr && !is_frozen_short) {
    (void)checked_precision(where_, name, parameter);
  }
  ARGOSY_CHECK(parameter.is_leaf(),
               where_,
               "{}: expected a leaf tensor, got the result of an operation",
               name);
  ARGOSY_CHECK(!names_.contains(name), where_, "{}: two parameters have this name", name);
}

void ParamRegistry::add(const std::string& name, const at::Tensor& parameter, std::size_t group) {
  if (find(parameter).has_value()) {
    return;  // tied weights: the first name counts
  }
  check_new(name, parameter);
  places_[parameter.unsafeGetTensorImpl()] = parameters_.size();
  names_.insert(name);
  parameters_.emplace_back(name, parameter);
  group_of_.push_back(group);
  const bool decays = !decays_at_all_ || decays_at_all_(name);
  decays_.push_back(decays ? groups_[group].weight_decay : WeightDecay());
  groups_[group].names.push_back(name);
}

}  // namespace argosy::optim
