#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace argosy::engine {

/// What autograd does where a computation of one's own stands in its graph, with any number of
/// inputs: torch::autograd::Function has a fixed one.
struct GraphNode {
  /// Gets the gradient of each output and returns that of each input. Where there is none, the
  /// tensor is undefined.
  std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& grads)> backward;
  /// Lets go of what only backward needs: the graph is not kept.
  std::function<void()> release;
};

/// Returns the outputs, which were computed without a graph, as results of a node with these
/// inputs. Only floats and complex numbers get a gradient.
[[nodiscard]] std::vector<at::Tensor> with_node(GraphNode node,
                                                const std::vector<at::Tensor>& inputs,
                                                const std::vector<at::Tensor>& outputs);

}  // namespace argosy::engine
