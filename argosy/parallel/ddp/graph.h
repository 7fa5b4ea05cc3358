#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

namespace argosy::parallel::ddp {

/// Which of `parameters` a backward pass from `outputs` can reach: reached[i] is set to 1, others
/// keep their value.
/// Cost: one walk over the autograd graph.
void mark_reachable(std::span<const at::Tensor> outputs,
                    std::span<const at::Tensor> parameters,
                    std::vector<uint8_t>& reached);

}  // namespace argosy::parallel::ddp
