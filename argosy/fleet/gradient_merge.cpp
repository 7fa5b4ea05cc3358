#include "argosy/fleet/gradient_merge.h"

#include <cstdint>
#include <utility>

#include <ATen/core/grad_mode.h>

#include "argosy/base/check.h"

namespace argosy::fleet::detail {
namespace {

class MergedGradients final : public optim::OptimizerImpl {
 public:
  MergedGradients(std::shared_ptr<optim::OptimizerImpl> inner,
                  const GradientMergeConfigs& configs,
                  std::vector<std::shared_ptr<parallel::ddp::Core>> models)
      : inner_(std::move(inner)), configs_(configs), models_(std::move(models)) {
    begin_pass();
  }

  void step() override {
    if (++passes_ < configs_.k_steps) {
      begin_pass();
      return;
    }
    if (configs_.avg) {
      const at::NoGradGuard no_grad;
      for (const auto& [name, parameter] : parameters()) {
        if (parameter.grad().defined()) {
          parameter.mutable_grad().div_(configs_.k_steps);
        }
      }
    }
    passes_ = 0;
    begin_pass();
    inner_->step();
  }

  void zero_grad(const optim::ZeroGradOptions& options) override {
    if (passes_ == 0) {
      inner_->zero_grad(options);
    }
  }

  [[nodiscard]] const engine::NamedTensors& parameters() const override {
    return inner_->parameters();
  }
  [[nodiscard]] const std::vector<optim::GroupInfo>& groups() const override {
    return inner_->groups();
  }
  void set_group_lr(size_t group, double lr) override { inner_->set_group_lr(group, lr); }
  void add_param_group(const engine::NamedTensors& parameters,
                       const optim::ParamGroup& group) override {
    inner_->add_param_group(parameters, group);
  }
  [[nodiscard]] std::string clipping() const override { return inner_->clipping(); }
  [[nodiscard]] optim::OptimizerState state_dict() const override {
    ARGOSY_CHECK(passes_ == 0,
                 "fleet.gradient_merge",
                 "state_dict() after {} of {} passes, whose gradients it would not hold. Save "
                 "after the step that acts.",
                 passes_,
                 configs_.k_steps);
    return inner_->state_dict();
  }
  void load_state_dict(const optim::OptimizerState& state) override {
    inner_->load_state_dict(state);
  }

 private:
  /// The last pass of an update averages over the ranks, those before it do not.
  void begin_pass() {
    if (passes_ + 1 == configs_.k_steps) {
      local_.clear();
    } else if (local_.empty()) {
      for (const std::shared_ptr<parallel::ddp::Core>& model : models_) {
        local_.emplace_back(model);
      }
    }
  }

  std::shared_ptr<optim::OptimizerImpl> inner_;
  GradientMergeConfigs configs_;
  std::vector<std::shared_ptr<parallel::ddp::Core>> models_;
  int64_t passes_ = 0;  // since the last step that acted
  std::vector<parallel::NoSync> local_{};
};

}  // namespace

optim::Optimizer merge_gradients(const optim::Optimizer& optimizer,
                                 const GradientMergeConfigs& configs,
                                 std::vector<std::shared_ptr<parallel::ddp::Core>> models) {
  return optim::Optimizer(
      std::make_shared<MergedGradients>(optimizer.impl(), configs, std::move(models)));
}

}  // namespace argosy::fleet::detail
