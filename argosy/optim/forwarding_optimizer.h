#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "argosy/optim/optimizer.h"

namespace argosy::optim {

/// An optimizer around another one, which it hands everything to. Derive from it and replace what
/// differs, usually step() and the state. Divisions of steps belong to the inner one: they are
/// made before it is wrapped.
class ForwardingOptimizer : public OptimizerImpl {
 public:
  explicit ForwardingOptimizer(std::shared_ptr<OptimizerImpl> inner) : inner_(std::move(inner)) {}

  void step() override { inner_->step(); }
  void zero_grad(const ZeroGradOptions& options) override { inner_->zero_grad(options); }
  [[nodiscard]] const engine::NamedTensors& parameters() const override {
    return inner_->parameters();
  }
  [[nodiscard]] const std::vector<GroupInfo>& groups() const override { return inner_->groups(); }
  void set_group_lr(std::size_t group, double lr) override { inner_->set_group_lr(group, lr); }
  void add_param_group(const engine::NamedTensors& parameters, const ParamGroup& group) override {
    inner_->add_param_group(parameters, group);
  }
  [[nodiscard]] std::string name() const override { return inner_->name(); }
  [[nodiscard]] Choices choices() const override { return inner_->choices(); }
  [[nodiscard]] OptimizerState state_dict() const override { return inner_->state_dict(); }
  void load_state_dict(const OptimizerState& state) override { inner_->load_state_dict(state); }
  void note_loss(double loss) override { inner_->note_loss(loss); }
  bool use_shared_weights(bool shared) override { return inner_->use_shared_weights(shared); }
  void weights_replaced() override { inner_->weights_replaced(); }
  [[nodiscard]] bool gathers_gradients() const override { return inner_->gathers_gradients(); }
  [[nodiscard]] const ShardedStep* sharded() const override { return inner_->sharded(); }

  [[nodiscard]] const std::shared_ptr<OptimizerImpl>& inner() const noexcept { return inner_; }

 private:
  std::shared_ptr<OptimizerImpl> inner_;
};

/// Returns the optimizer that all others are around: the one whose rates a schedule sets.
[[nodiscard]] inline const OptimizerImpl* innermost(const OptimizerImpl& optimizer) {
  const auto* const around = dynamic_cast<const ForwardingOptimizer*>(&optimizer);
  return around == nullptr ? &optimizer : innermost(*around->inner());
}

}  // namespace argosy::optim
