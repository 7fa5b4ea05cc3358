#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace argosy::engine {

/// What some computation takes from outside.
struct UsedTensors {
  /// Tensors that require a gradient: parameters, or results that are part of a graph.
  std::vector<at::Tensor> with_gradient{};
  /// Tensors without one that were there before and have been written: the statistics of a norm.
  std::vector<at::Tensor> written{};
};

/// Runs `body` without gradients and returns what this thread's dispatcher saw meanwhile, each
/// tensor once. Calls may be nested. What reads memory without an operator of libtorch is not seen.
/// Cost: about a microsecond for each operator.
[[nodiscard]] UsedTensors used_tensors(const std::function<void()>& body);

}  // namespace argosy::engine
