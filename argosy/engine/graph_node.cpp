#include "argosy/engine/graph_node.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/version.h>

#include "argosy/engine/version.h"

namespace argosy::engine {
namespace {

using torch::autograd::variable_list;
using NodePointer = decltype(torch::autograd::Edge::function);

struct OwnNode final : torch::autograd::Node {
  explicit OwnNode(GraphNode node) : own(std::move(node)) {}
  variable_list apply(variable_list&& grads) override { return own.backward(grads); }
  void release_variables() override { own.release(); }

  GraphNode own;
};

NodePointer make_node(GraphNode node) {
#if ARGOSY_TORCH_AT_LEAST(2, 14)
  return c10::make_intrusive<OwnNode>(std::move(node));
#else
  return {new OwnNode(std::move(node)), torch::autograd::deleteNode};
#endif
}

}  // namespace

std::vector<at::Tensor> with_node(GraphNode node,
                                  const std::vector<at::Tensor>& inputs,
                                  const std::vector<at::Tensor>& outputs) {
  std::vector<at::Tensor> results;
  const bool learns =
      std::ranges::any_of(inputs, [](const at::Tensor& input) { return input.requires_grad(); });
  const NodePointer pointer = make_node(std::move(node));
  pointer->set_next_edges(torch::autograd::collect_next_edges(inputs));
  for (const at::Tensor& output : outputs) {
    at::Tensor result = output.detach();
    const bool has_gradient =
        at::isFloatingType(result.scalar_type()) || at::isComplexType(result.scalar_type());
    if (learns && has_gradient) {
      torch::autograd::set_history(result, pointer);
    } else {
      pointer->add_input_metadata(torch::autograd::Node::undefined_input());
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace argosy::engine
