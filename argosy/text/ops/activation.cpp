#include "argosy/text/ops/activation.h"

#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include "argosy/text/ops/activation_kernels.h"
#include "argosy/text/ops/fused.h"

namespace argosy::text::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Gelu : torch::autograd::Function<Gelu> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    at::Tensor y = at::empty_like(x);
    for_rows(x.numel(), 1, [&](int64_t begin, int64_t end) {
      kernels::gelu(source_of(x, begin), end - begin, target_of(y, begin).data);
    });
    context->save_for_backward({x});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    refuse_second_derivative("gelu_tanh");
    const at::Tensor x = context->get_saved_variables()[0];
    const at::Tensor dy = gradients[0].contiguous();
    const at::Tensor dx = at::empty_like(x);
    for_rows(x.numel(), 1, [&](int64_t begin, int64_t end) {
      kernels::gelu_gradient(
          source_of(x, begin), source_of(dy, begin).data, end - begin, target_of(dx, begin).data);
    });
    return {dx};
  }
};

struct Swiglu : torch::autograd::Function<Swiglu> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate_and_up) {
    const int64_t width = gate_and_up.size(-1) / 2;
    std::vector<int64_t> sizes = gate_and_up.sizes().vec();
    sizes.back() = width;
    at::Tensor y = at::empty(sizes, gate_and_up.options());
    for_rows(y.numel() / width, width, [&](int64_t begin, int64_t end) {
      kernels::swiglu(source_of(gate_and_up, begin * 2 * width),
                      end - begin,
                      width,
                      target_of(y, begin * width).data);
    });
    context->save_for_backward({gate_and_up});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    refuse_second_derivative("swiglu");
    const at::Tensor gate_and_up = context->get_saved_variables()[0];
    const at::Tensor dy = gradients[0].contiguous();
    const int64_t width = dy.size(-1);
    const at::Tensor gradient = at::empty_like(gate_and_up);
    for_rows(dy.numel() / width, width, [&](int64_t begin, int64_t end) {
      kernels::swiglu_gradient(source_of(gate_and_up, begin * 2 * width),
                               source_of(dy, begin * width).data,
                               end - begin,
                               width,
                               target_of(gradient, begin * 2 * width).data);
    });
    return {gradient};
  }
};

}  // namespace

at::Tensor gelu_tanh(const at::Tensor& x) {
  return can_fuse(x) ? Gelu::apply(x) : at::gelu(x, "tanh");
}

at::Tensor swiglu(const at::Tensor& gate_and_up) {
  if (can_fuse(gate_and_up)) {
    return Swiglu::apply(gate_and_up);
  }
  const std::vector<at::Tensor> halves = gate_and_up.chunk(2, -1);
  return at::silu(halves[0]) * halves[1];
}

}  // namespace argosy::text::ops
