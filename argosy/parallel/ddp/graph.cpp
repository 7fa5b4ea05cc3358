#include "argosy/parallel/ddp/graph.h"

#include <cstddef>
#include <unordered_map>
#include <unordered_set>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

namespace argosy::parallel::ddp {

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
  std::vector<const Node*> stack;
  std::unordered_set<const Node*> seen;
  auto visit = [&](const Node* node) {
    if (node != nullptr && seen.insert(node).second) {
      stack.push_back(node);
    }
  };
  for (const at::Tensor& output : outputs) {
    if (output.requires_grad()) {
      auto edge = torch::autograd::impl::gradient_edge(output);  // a parameter itself included
      visit(edge.function ? &*edge.function : nullptr);
    }
  }
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    if (auto found = accumulators.find(node); found != accumulators.end()) {
      reached[found->second] = 1;
    }
    for (const auto& edge : node->next_edges()) {
      visit(edge.function ? &*edge.function : nullptr);
    }
  }
}

}  // namespace argosy::parallel::ddp
