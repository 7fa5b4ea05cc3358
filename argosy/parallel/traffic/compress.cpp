#include "argosy/parallel/traffic/compress.h"

#include <utility>

#include "argosy/base/check.h"
#include "argosy/optim/forwarding_optimizer.h"

namespace argosy::parallel {
namespace {

/// An optimizer beside a way to average gradients, whose state it keeps with its own.
class CompressedSteps final : public optim::ForwardingOptimizer {
 public:
  CompressedSteps(std::shared_ptr<optim::OptimizerImpl> inner,
                  std::shared_ptr<GradientCompressor> compressor)
      : ForwardingOptimizer(std::move(inner)), compressor_(std::move(compressor)) {}

  void step() override { compressor_->step(*inner()); }
  void zero_grad(const optim::ZeroGradOptions& options) override {
    inner()->zero_grad(options);
    compressor_->drop_update();
  }
  [[nodiscard]] optim::Choices choices() const override {
    optim::Choices choices = inner()->choices();
    choices.emplace_back("gradients by", compressor_->name());
    return choices;
  }
  [[nodiscard]] optim::OptimizerState state_dict() const override {
    optim::OptimizerState state = inner()->state_dict();
    compressor_->add_state(state);
    return state;
  }
  void load_state_dict(const optim::OptimizerState& state) override {
    optim::OptimizerState own = state;
    compressor_->take_state(own);
    inner()->load_state_dict(own);
  }

 private:
  std::shared_ptr<GradientCompressor> compressor_;
};

void check_can_compress(const ddp::Core& model) {
  constexpr const char* kWhere = "parallel.compress";
  ARGOSY_CHECK(!model.options().find_unused_parameters,
               kWhere,
               "find_unused_parameters leaves gradients as they are that no rank has used, and a "
               "compression sends what it remembers of all of them. Leave one of them out.");
  ARGOSY_CHECK(!model.options().shard.has_value(),
               kWhere,
               "the parameters are divided (sharding), and each rank has a part of a gradient "
               "only. Leave sharding out, or the compression.");
}

}  // namespace

optim::Optimizer compress(const std::shared_ptr<ddp::Core>& model,
                          const optim::Optimizer& optimizer,
                          const std::shared_ptr<GradientCompressor>& compressor) {
  check_can_compress(*model);
  model->register_compressor(
      {.hook = [compressor](GradBucket& bucket) { return compressor->reduce(bucket); },
       .name = compressor->name(),
       .deal = [compressor](const auto& deal) { compressor->deal_to(deal); }});
  return optim::Optimizer(std::make_shared<CompressedSteps>(optimizer.impl(), compressor));
}

optim::Optimizer compress(const std::shared_ptr<ddp::Core>& model,
                          const optim::Optimizer& optimizer,
                          const PowerSgdOptions& options) {
  return compress(model,
                  optimizer,
                  std::make_shared<PowerSgd>(optimizer.parameters(), model->group(), options));
}

optim::Optimizer compress(const std::shared_ptr<ddp::Core>& model,
                          const optim::Optimizer& optimizer,
                          const DgcOptions& options) {
  return compress(
      model,
      optimizer,
      std::make_shared<DeepGradientCompression>(*optimizer.impl(), model->group(), options));
}

}  // namespace argosy::parallel
