#include "argosy/parallel/ddp/graph.h"

#include <cstddef>
#include <unordered_map>
#include <unordered_set>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

namespace argosy::parallel::ddp {

void visit_nodes(std::span<const at::Tensor> outputs,
                 std::span<const at::Tensor> stops,
                 const std::function<void(const torch::autograd::Node&)>& visit) {
  using torch::autograd::Node;
  const auto node_of = [](const torch::autograd::Edge& edge) -> const Node* {
    return edge.function ? &*edge.function : nullptr;
  };
  std::unordered_set<const Node*> seen{nullptr};
  for (const at::Tensor& stop : stops) {
    seen.insert(node_of(torch::autograd::impl::gradient_edge(stop)));
  }
  std::vector<const Node*> stack;
  const auto find = [&](const torch::autograd::Edge& edge) {
    if (seen.insert(node_of(edge)).second) {
      stack.push_back(node_of(edge));
    }
  };
  for (const at::Tensor& output : outputs) {
    if (output.requires_grad()) {
      find(torch::autograd::impl::gradient_edge(output));  // a parameter itself included
    }
  }
  while (!stack.empty()) {
    const Node* const node = stack.back();
    stack.pop_back();
    visit(*node);
    for (const auto& edge : node->next_edges()) {
      find(edge);
    }
  }
}

void mark_reachable(std::span<const at::Tensor> outputs,
                    std::span<const at::Tensor> parameters,
                    std::vector<uint8_t>& reached) {
  using torch::autograd::Node;
  std::unordered_map<const Node*, size_t> accumulators;
  for (size_t i = 0; i < parameters.size(); ++i) {
    // Alive as long as any graph refers to it, which is all that matters here; `auto` because the
    // pointer's type depends on libtorch's version.
    auto node = torch::autograd::impl::try_get_grad_accumulator(parameters[i]);
    if (node) {
      accumulators.emplace(&*node, i);
    }
  }
  visit_nodes(outputs, {}, [&](const Node& node) {
    if (const auto found = accumulators.find(&node); found != accumulators.end()) {
      reached[found->second] = 1;
    }
  });
}

}  // namespace argosy::parallel::ddp
