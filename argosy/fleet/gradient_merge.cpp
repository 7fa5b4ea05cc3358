#include "argosy/fleet/gradient_merge.h"

#include <cstdint>
#include <unordered_set>
#include <utility>

#include <ATen/core/grad_mode.h>

#include "argosy/base/check.h"
#include "argosy/optim/forwarding_optimizer.h"

namespace argosy::fleet::detail {
namespace {

class MergedGradients final : public optim::ForwardingOptimizer {
 public:
  MergedGradients(std::shared_ptr<optim::OptimizerImpl> inner,
                  const GradientMergeConfigs& configs,
                  const std::vector<std::shared_ptr<parallel::ddp::Core>>& models)
      : ForwardingOptimizer(std::move(inner)),
        configs_(configs),
        models_(models.begin(), models.end()) {
    begin_pass();
  }
  ~MergedGradients() override { set_local(false); }
  MergedGradients(const MergedGradients&) = delete;
  MergedGradients& operator=(const MergedGradients&) = delete;
  MergedGradients(MergedGradients&&) = delete;
  MergedGradients& operator=(MergedGradients&&) = delete;

  void step() override {
    ARGOSY_CHECK(!ended_,
                 "fleet.gradient_merge",
                 "another optimizer of the same parameters has been given to "
                 "distributed_optimizer() since. Use that one.");
    if (++passes_ < configs_.k_steps) {
      begin_pass();
      return;
    }
    if (configs_.avg) {
      const at::NoGradGuard no_grad;
      std::unordered_set<const at::TensorImpl*> divided;  // tied weights may share a gradient
      for (const auto& [name, parameter] : parameters()) {
        const at::Tensor& grad = parameter.grad();
        if (grad.defined() && divided.insert(grad.unsafeGetTensorImpl()).second) {
          parameter.mutable_grad().div_(configs_.k_steps);
        }
      }
    }
    passes_ = 0;
    begin_pass();
    inner()->step();
  }

  void zero_grad(const optim::ZeroGradOptions& options) override {
    if (passes_ == 0) {
      inner()->zero_grad(options);
    }
  }

  [[nodiscard]] optim::OptimizerState state_dict() const override {
    ARGOSY_CHECK(passes_ == 0,
                 "fleet.gradient_merge",
                 "state_dict() after {} of {} passes, whose gradients it would not hold. Save "
                 "after the step that acts.",
                 passes_,
                 configs_.k_steps);
    return inner()->state_dict();
  }
  void load_state_dict(const optim::OptimizerState& state) override {
    inner()->load_state_dict(state);
    passes_ = 0;  // what was merged belongs to other weights
    inner()->zero_grad({});
    begin_pass();
  }
  [[nodiscard]] bool gathers_gradients() const override { return true; }

  /// Lets all passes average again, because another optimizer updates these parameters now.
  void end() {
    ended_ = true;
    set_local(false);
    models_.clear();  // a state that is loaded later changes nothing for them
  }

 private:
  /// The last pass of an update averages over the ranks, those before it only in the order
  /// "reduced".
  void begin_pass() { set_local(configs_.order == "local" && passes_ + 1 < configs_.k_steps); }

  void set_local(bool local) {
    for (const std::weak_ptr<parallel::ddp::Core>& each : models_) {
      if (const auto model = each.lock(); model != nullptr && local != local_) {
        local ? model->enter_no_sync() : model->leave_no_sync();
      }
    }
    local_ = local;
  }

  GradientMergeConfigs configs_;
  /// Not owned: a wrapper that is let go of takes its hooks along.
  std::vector<std::weak_ptr<parallel::ddp::Core>> models_;
  bool ended_ = false;
  int64_t passes_ = 0;  // since the last step that acted
  bool local_ = false;  // the models are under no_sync()
};

}  // namespace

bool is_merged(const optim::Optimizer& optimizer) {
  return dynamic_cast<const MergedGradients*>(optimizer.impl().get()) != nullptr;
}

void end_merging(optim::OptimizerImpl& former, const optim::Optimizer& optimizer) {
  auto* const merged = dynamic_cast<MergedGradients*>(&former);
  if (merged != nullptr && have_parameters_in_common(former, *optimizer.impl())) {
    merged->end();
  }
}

optim::Optimizer merge_gradients(const optim::Optimizer& optimizer,
                                 const GradientMergeConfigs& configs,
                                 const std::vector<std::shared_ptr<parallel::ddp::Core>>& models) {
  return optim::Optimizer(std::make_shared<MergedGradients>(optimizer.impl(), configs, models));
}

}  // namespace argosy::fleet::detail
