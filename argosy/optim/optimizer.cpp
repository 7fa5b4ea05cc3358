#include "argosy/optim/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "argosy/base/check.h"

namespace argosy::optim {

std::string in_words(const WeightDecay& decay) {
  using Kind = WeightDecay::Kind;
  return fmt::format("{}{}",
                     decay.kind == Kind::kL1   ? "L1 "
                     : decay.kind == Kind::kL2 ? "L2 "
                                               : "",
                     decay.coeff);
}

const engine::StateDict* OptimizerState::find(std::string_view name) const {
  for (const auto& [own, entry] : parameters) {
    if (own == name) {
      return &entry;
    }
  }
  return nullptr;
}

OptimizerState OptimizerState::clone() const {
  OptimizerState copy{.optimizer = optimizer, .groups = groups};
  for (const auto& [name, entry] : parameters) {
    copy.parameters.emplace_back(name, entry.clone());
  }
  return copy;
}

Choices rates_in_words(const std::vector<GroupInfo>& groups) {
  Choices all;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    all.emplace_back(fmt::format("learning rate of group {}", i),
                     fmt::format("{}", static_cast<float>(groups[i].lr)));
    all.emplace_back(fmt::format("weight decay of group {}", i), in_words(groups[i].weight_decay));
  }
  return all;
}

bool have_parameters_in_common(const OptimizerImpl& a, const OptimizerImpl& b) {
  std::unordered_set<const c10::TensorImpl*> of_a;
  for (const auto& [name, parameter] : a.parameters()) {
    of_a.insert(parameter.unsafeGetTensorImpl());
  }
  return std::ranges::any_of(b.parameters(), [&](const auto& entry) {
    return of_a.contains(entry.second.unsafeGetTensorImpl());
  });
}

Optimizer::Optimizer(std::shared_ptr<OptimizerImpl> impl) : impl_(std::move(impl)) {
  ARGOSY_CHECK(impl_ != nullptr, "optim.Optimizer", "the implementation is null");
}

void Optimizer::step() {
  impl_->step();
}

void Optimizer::zero_grad(const ZeroGradOptions& options) {
  impl_->zero_grad(options);
}

const engine::NamedTensors& Optimizer::parameters() const {
  return impl_->parameters();
}

const std::vector<GroupInfo>& Optimizer::param_groups() const {
  return impl_->groups();
}

double Optimizer::lr() const {
  return impl_->groups().front().lr;
}

void Optimizer::set_lr(double lr) {
  const std::size_t count = impl_->groups().size();
  for (std::size_t group = 0; group < count; ++group) {
    impl_->set_group_lr(group, lr * impl_->groups()[group].lr_scale);
  }
}

void Optimizer::set_group_lr(std::size_t group, double lr) {
  impl_->set_group_lr(group, lr);
}

OptimizerState Optimizer::state_dict() const {
  return impl_->state_dict();
}

void Optimizer::load_state_dict(const OptimizerState& state) {
  impl_->load_state_dict(state);
}

}  // namespace argosy::optim
