#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

namespace argosy::parallel::ddp {

/// Sets reached[i] to 1 for each of `parameters` that a backward pass from `outputs` can reach.
/// Other entries keep their value.
/// Cost: one walk over the autograd graph.
void mark_reachable(std::span<const at::Tensor> outputs,
                    std::span<const at::Tensor> parameters,
                    std::vector<uint8_t>& reached);

}  // namespace argosy::parallel::ddp
