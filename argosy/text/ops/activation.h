#pragma once

#include <ATen/core/Tensor.h>

namespace argosy::text::ops {

/// Returns GELU by its tanh formula, x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))).
///
/// Shape: any. Source: Hendrycks & Gimpel, "Gaussian error linear units", 2016; the formula of
/// torch.nn.GELU(approximate="tanh").
[[nodiscard]] at::Tensor gelu_tanh(const at::Tensor& x);

/// Returns SiLU(gate) · up of the two halves of the last dim, gate first.
///
/// Shape: [..., 2F] → [..., F]. Source: Shazeer, "GLU variants improve Transformer", 2020.
[[nodiscard]] at::Tensor swiglu(const at::Tensor& gate_and_up);

}  // namespace argosy::text::ops
