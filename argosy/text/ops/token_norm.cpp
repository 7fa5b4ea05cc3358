// R rows of C values.
#include "argosy/text/ops/token_norm.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include "argosy/engine/autocast.h"
#include "argosy/engine/coming_memory.h"
#include "argosy/text/ops/fused.h"
#include "argosy/text/ops/token_norm_kernels.h"

namespace argosy::text::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Rows whose gradients of weight and bias are summed in f32, one after the other.
constexpr int64_t kRowsOfAPart = 32;

/// By libtorch's operators, for any device and type.
at::Tensor plain_norm(const at::Tensor& x,
                      const NormWeights& weights,
                      const TokenNormOptions& options) {
  if (options.centered) {
    return at::layer_norm(x, {x.size(-1)}, weights.weight, weights.bias, options.epsilon);
  }
  const bool narrow = x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf;
  const at::Tensor wide = narrow ? x.to(at::kFloat) : x;
  const at::Tensor scale = wide.square().mean({-1}, /*keepdim=*/true).add(options.epsilon).rsqrt();
  const at::Tensor normed = (wide * scale * weights.weight).to(x.scalar_type());
  return weights.bias.defined() ? normed + weights.bias : normed;
}

float* floats_of(const at::Tensor& x, int64_t at = 0) {
  return x.defined() ? x.data_ptr<float>() + at : nullptr;
}

/// The sums over parts of [parts, C], in their order, in f64.
at::Tensor sum_of_parts(const at::Tensor& parts) {
  return parts.sum(0, false, at::kDouble).to(at::kFloat);
}

struct AddNorm : torch::autograd::Function<AddNorm> {
  /// Without a branch the sum is x.
  static variable_list forward(AutogradContext* context,
                               const at::Tensor& x,
                               const c10::optional<at::Tensor>& added,
                               const at::Tensor& weight,
                               const c10::optional<at::Tensor>& summand,
                               at::ScalarType type,
                               const TokenNormOptions& options) {
    const at::Tensor branch = added.value_or(at::Tensor());
    const at::Tensor bias = summand.value_or(at::Tensor());
    const engine::DirectUse use({weight, bias});
    const int64_t width = x.size(-1);
    const int64_t rows = x.numel() / width;
    const at::Tensor sum = branch.defined() ? at::empty_like(x) : x;
    const at::Tensor normed = at::empty(x.sizes(), x.options().dtype(type));
    const at::Tensor moments = at::empty({2, rows}, x.options().dtype(at::kFloat));
    for_rows(rows, width, [&](int64_t begin, int64_t end) {
      kernels::norm_rows(source_of(x, begin * width),
                         source_of(branch, begin * width),
                         {end - begin, width, options.centered},
                         options.epsilon,
                         floats_of(weight),
                         floats_of(bias),
                         target_of(sum, begin * width).data,
                         target_of(normed, begin * width),
                         floats_of(moments, begin),
                         floats_of(moments, rows + begin));
    });
    context->save_for_backward({sum, weight, moments});
    context->saved_data["centered"] = options.centered;
    context->saved_data["has_bias"] = bias.defined();
    context->saved_data["branch"] =
        static_cast<int64_t>(branch.defined() ? branch.scalar_type() : at::kFloat);
    context->saved_data["has_branch"] = branch.defined();
    context->set_materialize_grads(false);
    return {sum, normed};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    refuse_second_derivative("add_norm");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& sum = saved[0];
    const bool has_branch = context->saved_data["has_branch"].toBool();
    const auto branch = static_cast<at::ScalarType>(context->saved_data["branch"].toInt());
    at::Tensor dx, of_weight, of_bias;
    if (gradients[1].defined()) {
      std::tie(dx, of_weight, of_bias) = through_norm(*context, saved, gradients);
    } else {
      dx = gradients[0];
    }
    const bool narrow = has_branch && dx.defined() && branch != sum.scalar_type();
    return {dx,
            has_branch ? (narrow ? converted(dx.contiguous(), branch) : dx) : at::Tensor(),
            of_weight,
            of_bias,
            at::Tensor(),
            at::Tensor()};
  }

  static std::tuple<at::Tensor, at::Tensor, at::Tensor> through_norm(
      AutogradContext& context, const variable_list& saved, const variable_list& gradients) {
    const at::Tensor &x = saved[0], &weight = saved[1], &moments = saved[2];
    const int64_t width = x.size(-1);
    const int64_t rows = x.numel() / width;
    const bool centered = context.saved_data["centered"].toBool();
    const at::Tensor of_normed = gradients[1].contiguous();
    const at::Tensor passed =
        gradients[0].defined() ? gradients[0].to(x.scalar_type()).contiguous() : at::Tensor();
    const engine::DirectUse use({weight});
    const int64_t parts = (rows + kRowsOfAPart - 1) / kRowsOfAPart;
    const at::Tensor of_weight = at::zeros({parts, width}, weight.options());
    const at::Tensor of_bias = context.saved_data["has_bias"].toBool()
                                   ? at::zeros({parts, width}, weight.options())
                                   : at::Tensor();
    const at::Tensor dx = at::empty_like(x);
    at::parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part) {
        const int64_t begin = part * kRowsOfAPart;
        const int64_t end = std::min(rows, begin + kRowsOfAPart);
        kernels::norm_rows_gradient(source_of(x, begin * width),
                                    source_of(of_normed, begin * width),
                                    source_of(passed, begin * width),
                                    {end - begin, width, centered},
                                    floats_of(weight),
                                    floats_of(moments, begin),
                                    floats_of(moments, rows + begin),
                                    target_of(dx, begin * width).data,
                                    floats_of(of_weight, part * width),
                                    floats_of(of_bias, part * width));
      }
    });
    return {dx, sum_of_parts(of_weight), of_bias.defined() ? sum_of_parts(of_bias) : at::Tensor()};
  }
};

bool can_fuse_norm(const at::Tensor& x, const at::Tensor& branch, const NormWeights& weights) {
  return can_fuse(x) && can_fuse_if_defined(branch) && can_fuse(weights.weight) &&
         weights.weight.scalar_type() == at::kFloat && can_fuse_if_defined(weights.bias) &&
         (!weights.bias.defined() || weights.bias.scalar_type() == at::kFloat) &&
         (!branch.defined() ||
          (branch.sizes() == x.sizes() &&
           (x.scalar_type() == at::kFloat || branch.scalar_type() == at::kBFloat16)));
}

/// The type for the product that follows.
at::ScalarType type_of_result(const at::Tensor& x) {
  return engine::is_autocast_enabled() && engine::autocast_dtype() == at::kBFloat16
             ? at::kBFloat16
             : x.scalar_type();
}

}  // namespace

at::Tensor token_norm(const at::Tensor& x,
                      const NormWeights& weights,
                      const TokenNormOptions& options) {
  return add_norm(x, at::Tensor(), weights, options).normed;
}

AddedNorm add_norm(const at::Tensor& x,
                   const at::Tensor& branch,
                   const NormWeights& weights,
                   const TokenNormOptions& options) {
  if (can_fuse_norm(x, branch, weights)) {
    const variable_list both = AddNorm::apply(x,
                                              if_defined(branch),
                                              weights.weight,
                                              if_defined(weights.bias),
                                              type_of_result(x),
                                              options);
    return {both[0], both[1]};
  }
  const at::Tensor sum = branch.defined() ? x + branch : x;
  return {sum, plain_norm(sum, weights, options)};
}

}  // namespace argosy::text::ops
