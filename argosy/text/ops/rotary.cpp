// N sequences, T tokens, H heads that are rotated, D values of a head.
#include "argosy/text/ops/rotary.h"

#include <ATen/Functions.h>

namespace argosy::text::ops {

RotaryTable rotary_table(int64_t context, int64_t head_width, double theta) {
  const at::Tensor exponents = at::arange(0, head_width, 2, at::kDouble) / head_width;
  const at::Tensor angles =
      at::outer(at::arange(context, at::kDouble), at::pow(theta, exponents).reciprocal());
  return {.cosine = angles.cos().to(at::kFloat), .sine = angles.sin().to(at::kFloat)};
}

at::Tensor rotate(const at::Tensor& qkv,
                  const RotaryTable& table,
                  int64_t heads,
                  int64_t position) {
  const int64_t half = table.cosine.size(1);
  const int64_t tokens = qkv.size(1);
  const auto rows = [&](const at::Tensor& all) {
    return all.narrow(0, position, tokens).to(qkv.options()).unsqueeze(1);  // [T, 1, D / 2]
  };
  const at::Tensor cosine = rows(table.cosine);
  const at::Tensor sine = rows(table.sine);
  const int64_t rotated = heads * 2 * half;
  const at::Tensor all_nthd = qkv.narrow(-1, 0, rotated).unflatten(-1, {heads, 2 * half});
  const at::Tensor first = all_nthd.narrow(-1, 0, half);
  const at::Tensor second = all_nthd.narrow(-1, half, half);
  const at::Tensor turned =
      at::cat({first * cosine - second * sine, second * cosine + first * sine}, -1).flatten(-2);
  return at::cat({turned, qkv.narrow(-1, rotated, qkv.size(-1) - rotated)}, -1);
}

}  // namespace argosy::text::ops
