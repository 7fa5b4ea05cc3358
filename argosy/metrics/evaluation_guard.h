#pragma once

#include <cstddef>
#include <memory>

namespace torch::nn {
class Module;
}

namespace argosy::metrics {

/// While it lives, `module` is in evaluation mode and this thread records no gradients; afterwards
/// every submodule is back in the mode that it had (a frozen one stays frozen).
/// Lifetime: `module` must outlive the guard. Use on one thread.
class EvaluationGuard final {
 public:
  explicit EvaluationGuard(const torch::nn::Module& module);
  ~EvaluationGuard();
  EvaluationGuard(const EvaluationGuard&) = delete;
  EvaluationGuard& operator=(const EvaluationGuard&) = delete;
  EvaluationGuard(EvaluationGuard&&) = delete;
  EvaluationGuard& operator=(EvaluationGuard&&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace argosy::metrics
