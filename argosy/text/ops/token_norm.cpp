#include "argosy/text/ops/token_norm.h"

#include <ATen/Functions.h>

#include "argosy/engine/autocast.h"

namespace argosy::text::ops {
namespace {

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

}  // namespace

at::Tensor token_norm(const at::Tensor& x,
                      const NormWeights& weights,
                      const TokenNormOptions& options) {
  return plain_norm(x, weights, options);
}

AddedNorm add_norm(const at::Tensor& x,
                   const at::Tensor& branch,
                   const NormWeights& weights,
                   const TokenNormOptions& options) {
  const at::Tensor sum = branch.defined() ? x + branch : x;
  return {sum, plain_norm(sum, weights, options)};
}

}  // namespace argosy::text::ops
