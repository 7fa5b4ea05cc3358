#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"

namespace torch::nn {
class Module;
}

namespace argosy::parallel::ddp {

/// Returns the weights of the module's torch::nn::Embedding and EmbeddingBag with sparse(true) that
/// require a gradient, with their names, each once: backward gives them the rows that were looked
/// up, and no others.
[[nodiscard]] std::vector<std::pair<std::string, at::Tensor>> sparse_weights(
    const torch::nn::Module& module);

/// Averages the gradients of sparse weights over a group: ranks exchange the rows that they have,
/// beside the buckets. On all ranks the gradient is then sparse and coalesced, with the rows that
/// any of them has, and the same bits.
///
/// Cost: two all-gathers for each weight, of this rank's rows and their numbers.
/// Not thread-safe: as the wrapper.
class SparseGradients final {
 public:
  /// `timeout` applies to each operation; zero means the group's.
  SparseGradients(std::vector<std::pair<std::string, at::Tensor>> weights,
                  const comm::Group& group,
                  std::chrono::milliseconds timeout);

  [[nodiscard]] bool empty() const { return weights_.empty(); }
  [[nodiscard]] size_t size() const { return weights_.size(); }
  [[nodiscard]] const at::Tensor& weight(size_t index) const { return weights_[index].second; }
  /// Collective, at the end of a pass that averages. A weight that no rank has used keeps its
  /// gradient as it is. Errors: CommError, TimeoutError.
  void average() const;

 private:
  void average(const std::string& name, const at::Tensor& weight) const;

  std::vector<std::pair<std::string, at::Tensor>> weights_;
  comm::Group group_;
  std::chrono::milliseconds timeout_;
};

}  // namespace argosy::parallel::ddp
