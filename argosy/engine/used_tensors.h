#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace argosy::engine {

/// What some computation takes from outside.
struct UsedTensors {
  /// Tensors that require a gradient: parameters, or results that are part of a graph.
  std::vector<at::Tensor> with_gradient{};
  /// A tensor without one that was there before and has been written, as a norm's statistics are.
  struct Written {
    at::Tensor tensor;
    at::Tensor before;  ///< a copy of what it was
  };
  std::vector<Written> written{};
};

/// Lets this thread's watches know that something else than an operator uses a tensor.
void note_use(const at::Tensor& tensor);

/// Runs `body` without gradients and returns what this thread's dispatcher saw meanwhile, each
/// tensor once. Calls may be nested. What reads or writes memory without an operator of libtorch is
/// not seen, unless it says so by a DirectUse.
/// Errors: UsageError where `what` writes into a tensor of `with_gradient`.
/// Cost: about a microsecond for each operator.
[[nodiscard]] UsedTensors used_tensors(const std::function<void()>& body, const char* what);

}  // namespace argosy::engine
