#pragma once

#include <cstdint>

#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include "argosy/text/ops/token_norm.h"

namespace argosy::text {

/// The layers of a Gpt. Unlike libtorch's they draw no numbers when they are made: the model does
/// it for all of them, by name. Each holds `weight` and, if it has one, `bias`.

/// x · weightᵀ + bias; weight [outputs, inputs].
class ProjectionImpl final : public torch::nn::Cloneable<ProjectionImpl> {
 public:
  ProjectionImpl(int64_t inputs, int64_t outputs, bool has_bias);
  void reset() override;
  at::Tensor forward(const at::Tensor& x);
  at::Tensor weight, bias;

 private:
  int64_t inputs_, outputs_;
  bool has_bias_;
};
TORCH_MODULE(Projection);

/// A table of vectors; weight [rows, width].
class TokenTableImpl final : public torch::nn::Cloneable<TokenTableImpl> {
 public:
  TokenTableImpl(int64_t rows, int64_t width);
  void reset() override;
  at::Tensor forward(const at::Tensor& tokens);
  at::Tensor weight;

 private:
  int64_t rows_, width_;
};
TORCH_MODULE(TokenTable);

/// LayerNorm or RMSNorm; weight and bias [width].
class TokenNormImpl final : public torch::nn::Cloneable<TokenNormImpl> {
 public:
  TokenNormImpl(int64_t width, bool has_bias, const ops::TokenNormOptions& options);
  void reset() override;
  at::Tensor forward(const at::Tensor& x);
  /// See ops::add_norm().
  ops::AddedNorm add(const at::Tensor& x, const at::Tensor& branch);
  at::Tensor weight, bias;

 private:
  int64_t width_;
  bool has_bias_;
  ops::TokenNormOptions options_;
};
TORCH_MODULE(TokenNorm);

}  // namespace argosy::text
