#include "argosy/text/models/layers.h"

#include <algorithm>
#include <span>
#include <string>

#include <ATen/Functions.h>

#include "argosy/engine/deferred.h"
#include "argosy/text/ops/linear.h"

namespace argosy::text {
namespace {

/// A parameter's values before the model draws them. Where it is deferred, nothing is written.
at::Tensor filled(at::IntArrayRef sizes, float value) {
  at::Tensor made = at::empty(sizes);
  engine::draw_values(
      made,
      [value](int64_t /*first*/, std::span<float> values) { std::ranges::fill(values, value); },
      std::to_string(value));
  return made;
}

}  // namespace

ProjectionImpl::ProjectionImpl(int64_t inputs, int64_t outputs, bool has_bias)
    : inputs_(inputs), outputs_(outputs), has_bias_(has_bias) {
  reset();
}

void ProjectionImpl::reset() {
  weight = register_parameter("weight", filled({outputs_, inputs_}, 0));
  bias = register_parameter("bias", has_bias_ ? filled({outputs_}, 0) : at::Tensor(), has_bias_);
}

at::Tensor ProjectionImpl::forward(const at::Tensor& x) {
  return ops::linear(x, weight, bias);
}

TokenTableImpl::TokenTableImpl(int64_t rows, int64_t width) : rows_(rows), width_(width) {
  reset();
}

void TokenTableImpl::reset() {
  weight = register_parameter("weight", filled({rows_, width_}, 0));
}

at::Tensor TokenTableImpl::forward(const at::Tensor& tokens) {
  return at::embedding(weight, tokens);
}

TokenNormImpl::TokenNormImpl(int64_t width, bool has_bias, const ops::TokenNormOptions& options)
    : width_(width), has_bias_(has_bias), options_(options) {
  reset();
}

void TokenNormImpl::reset() {
  weight = register_parameter("weight", filled({width_}, 1));
  bias = register_parameter("bias", has_bias_ ? filled({width_}, 0) : at::Tensor(), has_bias_);
}

at::Tensor TokenNormImpl::forward(const at::Tensor& x) {
  return ops::token_norm(x, {weight, bias}, options_);
}

ops::AddedNorm TokenNormImpl::add(const at::Tensor& x, const at::Tensor& branch) {
  return ops::add_norm(x, branch, {weight, bias}, options_);
}

}  // namespace argosy::text
