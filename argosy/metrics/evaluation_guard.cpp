#include "argosy/metrics/evaluation_guard.h"

#include <utility>
#include <vector>

#include <torch/nn/module.h>

namespace argosy::metrics {
namespace {

using Modes = std::vector<std::pair<torch::nn::Module*, bool>>;

/// Parents before their children: train() sets a whole subtree, so this is the order to restore in.
void collect(torch::nn::Module& module, Modes& modes) {
  modes.emplace_back(&module, module.is_training());
  for (const auto& child : module.children()) {
    collect(*child, modes);
  }
}

}  // namespace

struct EvaluationGuard::Impl {
  torch::NoGradGuard no_grad;
  Modes modes;
};

EvaluationGuard::EvaluationGuard(const torch::nn::Module& module)
    : impl_(std::make_unique<Impl>()) {
  // Holders and wrappers hand out their module as const; its mode is not part of its value.
  auto& changed = const_cast<torch::nn::Module&>(module);
  collect(changed, impl_->modes);
  changed.eval();
}

EvaluationGuard::~EvaluationGuard() {
  for (const auto& [module, training] : impl_->modes) {
    module->train(training);
  }
}

}  // namespace argosy::metrics
