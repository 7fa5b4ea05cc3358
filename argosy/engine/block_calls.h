#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace argosy::engine {

/// A module whose forward passes a tensor through blocks of its own one after the other, and lets
/// something else make these calls: parallel::recompute_blocks(). Derive a model from it.
class BlockCalls {
 public:
  virtual ~BlockCalls() = default;
  BlockCalls() = default;
  BlockCalls(const BlockCalls&) = default;
  BlockCalls& operator=(const BlockCalls&) = default;
  BlockCalls(BlockCalls&&) = default;
  BlockCalls& operator=(BlockCalls&&) = default;

  using Call = std::function<at::Tensor(const at::Tensor& x)>;
  /// Gets a block, what calls it (and keeps it alive), and its argument. Returns the result.
  using Runner = std::function<at::Tensor(
      const torch::nn::Module& block, const Call& call, const at::Tensor& x)>;
  /// Makes forward call each block by `runner`; empty: as it is.
  virtual void run_blocks_by(Runner runner) = 0;
  /// Returns the blocks, which are submodules, in the order of their calls.
  [[nodiscard]] virtual std::vector<std::shared_ptr<torch::nn::Module>> called_blocks() const = 0;
};

}  // namespace argosy::engine
