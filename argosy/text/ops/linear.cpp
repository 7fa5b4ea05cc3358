// R rows, I inputs, O outputs.
#include "argosy/text/ops/linear.h"

#include <algorithm>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "argosy/engine/autocast.h"
#include "argosy/engine/coming_memory.h"
#include "argosy/text/ops/activation_kernels.h"
#include "argosy/text/ops/fused.h"

namespace argosy::text::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Columns that are summed by one thread.
constexpr int64_t kColumns = 256;

/// Sums over the rows, f32 [O]: see kernels::add_column_sums().
at::Tensor column_sums(const at::Tensor& x) {
  const int64_t rows = x.size(0), columns = x.size(1);
  at::Tensor sums = at::zeros({columns}, x.options().dtype(at::kDouble));
  at::parallel_for(0, columns, kColumns, [&](int64_t begin, int64_t end) {
    kernels::add_column_sums(source_of(x), {rows, columns, begin, end}, sums.data_ptr<double>());
  });
  return sums.to(at::kFloat);
}

struct Linear : torch::autograd::Function<Linear> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& weight,
                            const c10::optional<at::Tensor>& bias,
                            at::ScalarType type) {
    const engine::Autocast off({.enabled = false});
    const engine::DirectUse use({weight, bias.value_or(at::Tensor())});
    const at::Tensor rows = converted(x.reshape({-1, x.size(-1)}), type);
    const at::Tensor factors = converted(weight, type);
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.back() = weight.size(0);
    const at::Tensor y_rows =
        bias ? at::addmm(converted(*bias, type), rows, factors.t()) : at::mm(rows, factors.t());
    at::Tensor y = at::_unsafe_view(y_rows, sizes);
    // Ranks that divide the weight would keep 16-bit copies of all of it from here to backward.
    const bool comes = engine::coming_memory_of(weight) != nullptr;
    context->save_for_backward({rows, comes ? weight : factors});
    context->saved_data["bias"] = bias.has_value();
    context->saved_data["type"] = static_cast<int64_t>(x.scalar_type());
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    refuse_second_derivative("linear");
    const engine::Autocast off({.enabled = false});
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& rows = saved[0];
    const engine::DirectUse use({saved[1]});
    const at::Tensor factors = converted(saved[1], rows.scalar_type());
    const at::Tensor dy =
        gradients[0].to(rows.scalar_type()).reshape({-1, factors.size(0)}).contiguous();
    variable_list out(4);
    if (context->needs_input_grad(0)) {
      std::vector<int64_t> sizes = gradients[0].sizes().vec();
      sizes.back() = factors.size(1);
      out[0] = converted(at::mm(dy, factors),
                         static_cast<at::ScalarType>(context->saved_data["type"].toInt()))
                   .view(sizes);
    }
    if (context->needs_input_grad(1)) {
      out[1] = converted(at::mm(dy.t(), rows), at::kFloat);
    }
    if (context->saved_data["bias"].toBool()) {
      out[2] = column_sums(dy);
    }
    return out;
  }
};

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const bool mixed = engine::is_autocast_enabled();
  const at::ScalarType type = mixed ? engine::autocast_dtype() : x.scalar_type();
  const bool floats = can_fuse(weight) && weight.scalar_type() == at::kFloat &&
                      (!bias.defined() || (can_fuse(bias) && bias.scalar_type() == at::kFloat));
  // Without gradients under autocast its cache serves better: a model generates token by token.
  const bool cached = mixed && at::autocast::is_autocast_cache_enabled() &&
                      !at::GradMode::is_enabled() && engine::coming_memory_of(weight) == nullptr;
  if (floats && !cached && can_fuse(x) &&
      (type == at::kBFloat16 || (type == at::kFloat && !mixed))) {
    return Linear::apply(x, weight, if_defined(bias), type);
  }
  return at::linear(x, weight, bias);
}

}  // namespace argosy::text::ops
