// N sequences, T tokens, H heads that are rotated, D values of a head.
#include "argosy/text/ops/rotary.h"

#include <algorithm>
#include <numbers>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include "argosy/text/ops/attention_kernels.h"
#include "argosy/text/ops/fused.h"

namespace argosy::text::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The kernel over all sequences, whose tokens begin at the same position.
at::Tensor rotated(const at::Tensor& x,
                   const at::Tensor& cosine,
                   const at::Tensor& sine,
                   int64_t heads,
                   bool back) {
  const int64_t tokens = x.size(1), width = x.size(2), half = cosine.size(1);
  at::Tensor y = at::empty_like(x);
  for_rows(x.size(0) * tokens, width, [&](int64_t begin, int64_t end) {
    while (begin < end) {  // to the end of a sequence at a time
      const int64_t token = begin % tokens;
      const int64_t rows = std::min(end - begin, tokens - token);
      kernels::rotate_rows(source_of(x, begin * width),
                           {rows, width, heads, half, back},
                           cosine.data_ptr<float>() + token * half,
                           sine.data_ptr<float>() + token * half,
                           target_of(y, begin * width).data);
      begin += rows;
    }
  });
  return y;
}

struct Rotate : torch::autograd::Function<Rotate> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& qkv,
                            const at::Tensor& cosine,
                            const at::Tensor& sine,
                            int64_t heads) {
    context->save_for_backward({cosine, sine});
    context->saved_data["heads"] = heads;
    return rotated(qkv, cosine, sine, heads, /*back=*/false);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    refuse_second_derivative("rotate");
    const variable_list saved = context->get_saved_variables();
    const int64_t heads = context->saved_data["heads"].toInt();
    return {
        rotated(gradients[0].contiguous(), saved[0], saved[1], heads, /*back=*/true), {}, {}, {}};
  }
};

/// Of angles of one position, f64.
at::Tensor scaled(const at::Tensor& angles, const RotaryScaling& scaling) {
  const at::Tensor all = angles / scaling.factor;
  if (scaling.original_context == 0) {
    return all;
  }
  const at::Tensor turns =
      angles * (static_cast<double>(scaling.original_context) / (2 * std::numbers::pi));
  const at::Tensor kept = ((turns - scaling.low) / (scaling.high - scaling.low)).clamp(0, 1);
  return (1 - kept) * all + kept * angles;
}

}  // namespace

RotaryTable rotary_table(int64_t context,
                         int64_t head_width,
                         double theta,
                         const RotaryScaling& scaling) {
  const at::Tensor exponents = at::arange(0, head_width, 2, at::kDouble) / head_width;
  const at::Tensor angles = at::outer(at::arange(context, at::kDouble),
                                      scaled(at::pow(theta, exponents).reciprocal(), scaling));
  return {.cosine = angles.cos().to(at::kFloat), .sine = angles.sin().to(at::kFloat)};
}

at::Tensor rotate(const at::Tensor& qkv,
                  const RotaryTable& table,
                  int64_t heads,
                  int64_t position) {
  const int64_t half = table.cosine.size(1);
  const int64_t tokens = qkv.size(1);
  const at::Tensor cosine = table.cosine.narrow(0, position, tokens);
  const at::Tensor sine = table.sine.narrow(0, position, tokens);
  if (can_fuse(qkv)) {
    return Rotate::apply(qkv, cosine, sine, heads);
  }
  const at::Tensor across = cosine.to(qkv.options()).unsqueeze(1);  // [T, 1, D / 2]
  const at::Tensor up = sine.to(qkv.options()).unsqueeze(1);
  const int64_t rotated = heads * 2 * half;
  const at::Tensor all_nthd = qkv.narrow(-1, 0, rotated).unflatten(-1, {heads, 2 * half});
  const at::Tensor first = all_nthd.narrow(-1, 0, half);
  const at::Tensor second = all_nthd.narrow(-1, half, half);
  const at::Tensor turned =
      at::cat({first * across - second * up, second * across + first * up}, -1).flatten(-2);
  return at::cat({turned, qkv.narrow(-1, rotated, qkv.size(-1) - rotated)}, -1);
}

}  // namespace argosy::text::ops
