#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::autograd {
struct Node;
}

namespace argosy::parallel::ddp {

/// Calls `visit` once with each node of the autograd graph behind `outputs`. Does not go to what
/// `stops` are the results of, nor beyond.
void visit_nodes(std::span<const at::Tensor> outputs,
                 std::span<const at::Tensor> stops,
                 const std::function<void(const torch::autograd::Node&)>& visit);

/// Sets reached[i] to 1 for each of `parameters` that a backward pass from `outputs` can reach.
/// Other entries keep their value.
/// Cost: one walk over the autograd graph.
void mark_reachable(std::span<const at::Tensor> outputs,
                    std::span<const at::Tensor> parameters,
                    std::vector<uint8_t>& reached);

}  // namespace argosy::parallel::ddp
