#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "argosy/parallel/replicas.h"

namespace argosy::parallel {

/// A module that DataParallel takes: a holder (TORCH_MODULE) or a shared_ptr to a module whose
/// forward takes and returns a tensor. Wrappers such as DistributedDataParallel are refused.
template <typename M>
concept Replicable = requires(M& module, const at::Tensor& input) {
  { *module } -> std::convertible_to<const torch::nn::Module&>;
  { module->forward(input) } -> std::convertible_to<at::Tensor>;
};

/// One process with several devices. Each batch is divided among copies of the module that run in
/// parallel, and the gradients come together in the module's own parameters.
///
///     parallel::DataParallel model(vision::ResNet({.depth = 18}),
///                                  {.devices = {{at::kCUDA, 0}, {at::kCUDA, 1}}});
///     optim::Momentum optimizer(model, {.lr = 0.1});
///     loss(model(images), labels).backward();
///     optimizer.step();
///
/// DistributedDataParallel with one process per GPU is faster; this is for programs that cannot
/// start several processes. On the CPU the copies share the parameters' memory.
///
/// The batch is divided along dim 0 as Tensor::chunk does; with fewer samples than replicas, some
/// are idle. Outputs are joined in order on the first device. Gradients add up in one autograd
/// graph, and equal those of the module alone except for rounding, if samples do not mix. Batch
/// norm uses the statistics of each part; running statistics and all buffers are those of replica
/// 0, as in PyTorch. Replicas follow the module's training mode, its frozen parameters and changes
/// of its parameters, per submodule. Dropout differs from run to run, because threads share one
/// generator.
///
/// The module must be Cloneable: its reset() registers everything that it has. Making the copies
/// draws no random numbers. Backward runs on each device's thread; CPU replicas share one.
///
/// A handle: copies refer to the same replicas. Not thread-safe.
/// Errors: UsageError for a module that cannot be cloned, is not on the first device, or has norms
/// synchronized over ranks, and for an output without a row per sample. An exception of a replica
/// becomes a UsageError or Error that names the replica and its samples, when all have ended.
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
