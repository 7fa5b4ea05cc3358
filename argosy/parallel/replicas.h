#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "argosy/base/thread_pool.h"

namespace argosy::parallel {

struct DataParallelOptions {
  /// The device of each replica; the module lies on the first. A device may occur several times, as
  /// the CPU in {at::kCPU, at::kCPU}.
  std::vector<at::Device> devices{};
  /// The number of replicas on the module's own device if `devices` is empty. 0: the module alone
  /// on the CPU, else one replica on each device of its type.
  int64_t replicas = 0;
};

/// A module and its copies on several devices or threads, which share one set of parameters: the
/// part of DataParallel that does not depend on types. Not thread-safe.
class Replicas final {
 public:
  Replicas(std::shared_ptr<torch::nn::Module> module, const DataParallelOptions& options);

  [[nodiscard]] size_t size() const { return modules_.size(); }
  /// Replica 0 is the module itself.
  [[nodiscard]] torch::nn::Module& module(size_t replica) const { return *modules_[replica]; }

  /// Runs `forward` of replica i on part i of `input`, all at once, and returns the outputs in
  /// order.
  using Forward = std::function<at::Tensor(size_t replica, const at::Tensor& part)>;
  [[nodiscard]] at::Tensor run(const at::Tensor& input, const Forward& forward);

 private:
  void point_at_originals(size_t replica);
  [[nodiscard]] at::Tensor checked_forward(size_t replica,
                                           const std::vector<at::Tensor>& parts,
                                           const Forward& forward) const;

  std::vector<at::Device> devices_;
  std::vector<std::shared_ptr<torch::nn::Module>> modules_;
  std::unique_ptr<ThreadPool> threads_;  // of replicas 1 and up
};

}  // namespace argosy::parallel
