#include "argosy/text/models/layers.h"

#include <ATen/Functions.h>

#include "argosy/text/ops/linear.h"

namespace argosy::text {

ProjectionImpl::ProjectionImpl(int64_t inputs, int64_t outputs, bool has_bias)
    : inputs_(inputs), outputs_(outputs), has_bias_(has_bias) {
  reset();
}

void ProjectionImpl::reset() {
  weight = register_parameter("weight", at::zeros({outputs_, inputs_}));
  bias = register_parameter("bias", has_bias_ ? at::zeros({outputs_}) : at::Tensor(), has_bias_);
}

at::Tensor ProjectionImpl::forward(const at::Tensor& x) {
  return ops::linear(x, weight, bias);
}

TokenTableImpl::TokenTableImpl(int64_t rows, int64_t width) : rows_(rows), width_(width) {
  reset();
}

void TokenTableImpl::reset() {
  weight = register_parameter("weight", at::zeros({rows_, width_}));
}

at::Tensor TokenTableImpl::forward(const at::Tensor& tokens) {
  return at::embedding(weight, tokens);
}

TokenNormImpl::TokenNormImpl(int64_t width, bool has_bias, const ops::TokenNormOptions& options)
    : width_(width), has_bias_(has_bias), options_(options) {
  reset();
}

void TokenNormImpl::reset() {
  weight = register_parameter("weight", at::ones({width_}));
  bias = register_parameter("bias", has_bias_ ? at::zeros({width_}) : at::Tensor(), has_bias_);
}

at::Tensor TokenNormImpl::forward(const at::Tensor& x) {
  return ops::token_norm(x, {weight, bias}, options_);
}

ops::AddedNorm TokenNormImpl::add(const at::Tensor& x, const at::Tensor& branch) {
  return ops::add_norm(x, branch, {weight, bias}, options_);
}

}  // namespace argosy::text
