#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/optim/kernels/gradient.h"

// Internal to the room: the arithmetic of rules in memory that the kernels do not reach, because it
// is not the host's. It uses ATen's operators in the kernels' order, so a device that rounds as the
// CPU does gives the same bits.
namespace argosy::optim {

/// A whole parameter on a device, with the fields that MemoryRange has for one on the CPU.
struct TensorRange {
  at::Tensor param{};  ///< not a leaf of autograd: written in place
  at::Tensor grad{};
  std::vector<at::Tensor> states{};  ///< in the order of Rule::state_names()
};

/// Returns the gradient as the update sees it, like kernels::effective(). It may be range.grad
/// itself, so do not write to it.
[[nodiscard]] at::Tensor effective(const TensorRange& range, const kernels::GradientTerms& terms);

/// In double; waits for the device.
[[nodiscard]] double sum_of_squares(const at::Tensor& tensor);

}  // namespace argosy::optim
