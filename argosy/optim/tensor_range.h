#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/optim/kernels/gradient.h"

// Internal to the room: what rules compute with where the kernels do not reach, in memory that is
// not the host's. ATen's operators in the kernels' order, so that a device which rounds as the CPU
// does gives the same bits.
namespace argosy::optim {

/// A whole parameter on a device, with what MemoryRange has of one on the CPU.
struct TensorRange {
  at::Tensor param{};  ///< no leaf of autograd's: written in place
  at::Tensor grad{};
  std::vector<at::Tensor> states{};  ///< in the order of Rule::state_names()
};

/// kernels::effective(): the gradient as the update sees it. May be range.grad itself: not to be
/// written.
[[nodiscard]] at::Tensor effective(const TensorRange& range, const kernels::GradientTerms& terms);

/// In double; waits for the device.
[[nodiscard]] double sum_of_squares(const at::Tensor& tensor);

}  // namespace argosy::optim
