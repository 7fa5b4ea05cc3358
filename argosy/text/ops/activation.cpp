#include "argosy/text/ops/activation.h"

#include <ATen/Functions.h>

namespace argosy::text::ops {

at::Tensor gelu_tanh(const at::Tensor& x) {
  return at::gelu(x, "tanh");
}

at::Tensor swiglu(const at::Tensor& gate_and_up) {
  const std::vector<at::Tensor> halves = gate_and_up.chunk(2, -1);
  return at::silu(halves[0]) * halves[1];
}

}  // namespace argosy::text::ops
