#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "argosy/parallel/replicas.h"

namespace argosy::parallel {

/// What DataParallel takes: a module holder (TORCH_MODULE) or shared_ptr to a module whose forward
/// makes a tensor of a tensor; no wrapper such as DistributedDataParallel.
template <typename M>
concept Replicable = requires(M& module, const at::Tensor& input) {
  { *module } -> std::convertible_to<const torch::nn::Module&>;
  { module->forward(input) } -> std::convertible_to<at::Tensor>;
};

/// One process, several devices: each batch is divided among copies of the module that run at the
/// same time, and the gradients come together in the module's own parameters.
///
///     parallel::DataParallel model(vision::ResNet({.depth = 18}), {.devices = {{at::kCUDA, 0},
///     {at::kCUDA, 1}}}); optim::Momentum optimizer(model, {.lr = 0.1}); loss(model(images),
///     labels).backward(); optimizer.step();
///
/// With one GPU a process DistributedDataParallel is faster; this is for programs that cannot start
/// several. On the CPU the copies share the parameters' memory.
///
/// The batch is cut along dim 0 as Tensor::chunk does; fewer samples than replicas leave some idle.
/// Outputs are put together in order on the first device. Gradients add up in one autograd graph:
/// they are those of the module alone but for rounding, where samples do not mix. Batch norm takes
/// the statistics of each part; running ones, and all buffers, are those of replica 0, as in
/// PyTorch. Replicas follow the module's training mode, its frozen parameters and whatever changes
/// its parameters, submodule by submodule. Dropout draws differently from run to run, since threads
/// share one generator.
/// The module must be Cloneable: its reset() registers all that it has. Making the copies draws no
/// random numbers. Backward runs on each device's thread: CPU replicas share one.
///
/// A value handle: copies refer to the same replicas. Not thread-safe.
/// Errors: UsageError (a module that cannot be cloned, lies elsewhere than on the first device or
/// has norms synchronized over ranks; an output without a row for each sample); what a replica
/// throws comes as UsageError or Error naming the replica and its samples, when all have ended.
/// Source: torch.nn.DataParallel; libtorch's own data_parallel gives wrong gradients
/// (pytorch#40581).
template <Replicable M>
class DataParallel final {
 public:
  explicit DataParallel(M module, const DataParallelOptions& options = {})
      : module_(std::move(module)),
        replicas_(std::make_shared<Replicas>(pointer(module_), options)) {}

  /// Shape: [N, …] → [N, …].
  at::Tensor forward(const at::Tensor& input) {
    return replicas_->run(input, [this](size_t replica, const at::Tensor& part) -> at::Tensor {
      return dynamic_cast<Impl&>(replicas_->module(replica)).forward(part);
    });
  }
  at::Tensor operator()(const at::Tensor& input) { return forward(input); }

  [[nodiscard]] const M& module() const { return module_; }
  [[nodiscard]] auto* operator->() { return &*module_; }
  [[nodiscard]] auto named_parameters() const { return module_->named_parameters(); }
  [[nodiscard]] auto parameters() const { return module_->parameters(); }
  [[nodiscard]] auto named_buffers() const { return module_->named_buffers(); }
  void train(bool on = true) { module_->train(on); }
  void eval() { module_->eval(); }
  [[nodiscard]] size_t replicas() const { return replicas_->size(); }

 private:
  using Impl = std::remove_cvref_t<decltype(*std::declval<M&>())>;

  static std::shared_ptr<torch::nn::Module> pointer(const M& module) {
    if constexpr (requires { module.ptr(); }) {
      return module.ptr();
    } else {
      return module;
    }
  }

  M module_;
  std::shared_ptr<Replicas> replicas_;
};

}  // namespace argosy::parallel
