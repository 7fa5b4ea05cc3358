#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include "argosy/text/models/gpt_options.h"
#include "argosy/text/models/key_value_cache.h"
#include "argosy/text/models/layers.h"
#include "argosy/text/ops/rotary.h"

namespace argosy::text {

/// Causal self-attention of a block: parameters qkv and out.
class GptAttentionImpl final : public torch::nn::Cloneable<GptAttentionImpl> {
 public:
  /// `rotary`: null with learned positions.
  GptAttentionImpl(const GptOptions& options, std::shared_ptr<const ops::RotaryTable> rotary);
  void reset() override;
  at::Tensor forward(const at::Tensor& x);
  at::Tensor forward_cached(const at::Tensor& x, KeyValueCache& cache, std::size_t layer);
  Projection qkv{nullptr}, out{nullptr};

 private:
  GptOptions options_;
  std::shared_ptr<const ops::RotaryTable> rotary_;
};
TORCH_MODULE(GptAttention);

/// The feed-forward layer of a block: parameters up and down. With SwiGLU the first half of the
/// rows of `up` is the gate's.
class GptMlpImpl final : public torch::nn::Cloneable<GptMlpImpl> {
 public:
  explicit GptMlpImpl(const GptOptions& options);
  void reset() override;
  at::Tensor forward(const at::Tensor& x);
  Projection up{nullptr}, down{nullptr};

 private:
  GptOptions options_;
};
TORCH_MODULE(GptMlp);

/// A block of a Gpt: x + attention(norm1(x)), and to that its mlp(norm2(…)).
///
/// Shape: [N, T, width] → the same.
class GptBlockImpl final : public torch::nn::Cloneable<GptBlockImpl> {
 public:
  GptBlockImpl(const GptOptions& options, std::shared_ptr<const ops::RotaryTable> rotary);
  void reset() override;
  at::Tensor forward(const at::Tensor& x);
  /// The same for tokens that follow those in the cache.
  at::Tensor forward_cached(const at::Tensor& x, KeyValueCache& cache, std::size_t layer);
  TokenNorm norm1{nullptr}, norm2{nullptr};
  GptAttention attention{nullptr};
  GptMlp mlp{nullptr};

 private:
  template <typename Attend>
  at::Tensor through(const at::Tensor& x, const Attend& attend);

  GptOptions options_;
  std::shared_ptr<const ops::RotaryTable> rotary_;
};
TORCH_MODULE(GptBlock);

}  // namespace argosy::text
