#include "argosy/text/models/gpt_block.h"

#include <cmath>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "argosy/text/ops/activation.h"
#include "argosy/text/ops/causal_attention.h"

namespace argosy::text {
namespace {

ops::HeadShape heads_of(const GptOptions& options) {
  return {.heads = options.heads,
          .kv_heads = options.kv_heads_or_default(),
          .head_width = options.head_width()};
}

TokenNorm norm_of(const GptOptions& options) {
  const bool centered = options.norm == NormKind::kLayerNorm;
  return TokenNorm(options.width,
                   centered && options.bias,
                   ops::TokenNormOptions{.centered = centered, .epsilon = options.norm_epsilon});
}

at::Tensor dropped(const at::Tensor& x, const GptOptions& options, bool training) {
  return training && options.dropout > 0 ? at::dropout(x, options.dropout, true) : x;
}

}  // namespace

GptAttentionImpl::GptAttentionImpl(const GptOptions& options,
                                   std::shared_ptr<const ops::RotaryTable> rotary)
    : options_(options), rotary_(std::move(rotary)) {
  reset();
}

void GptAttentionImpl::reset() {
  const auto [heads, kv_heads, head_width] = heads_of(options_);
  qkv = register_module(
      "qkv", Projection(options_.width, (heads + 2 * kv_heads) * head_width, options_.bias));
  out = register_module("out", Projection(options_.width, options_.width, options_.bias));
}

at::Tensor GptAttentionImpl::forward(const at::Tensor& x) {
  const ops::HeadShape heads = heads_of(options_);
  at::Tensor all = qkv(x);
  if (rotary_ != nullptr) {
    all = ops::rotate(all, *rotary_, heads.heads + heads.kv_heads, 0);
  }
  return out(ops::causal_attention(all, heads, is_training() ? options_.dropout : 0));
}

at::Tensor GptAttentionImpl::forward_cached(const at::Tensor& x,
                                            KeyValueCache& cache,
                                            std::size_t layer) {
  const auto [heads, kv_heads, head_width] = heads_of(options_);
  at::Tensor all = qkv(x);
  if (rotary_ != nullptr) {
    all = ops::rotate(all, *rotary_, heads + kv_heads, cache.length());
  }
  const std::vector<at::Tensor> parts = all.unflatten(-1, {heads + 2 * kv_heads, head_width})
                                            .transpose(1, 2)
                                            .split_with_sizes({heads, kv_heads, kv_heads}, 1);
  const auto [keys, values] = cache.append(layer, parts[1], parts[2]);
  return out(ops::causal_attention(parts[0], keys, values).transpose(1, 2).flatten(2));
}

GptMlpImpl::GptMlpImpl(const GptOptions& options) : options_(options) {
  reset();
}

void GptMlpImpl::reset() {
  const int64_t hidden = options_.hidden_or_default();
  const int64_t halves = options_.activation == ActivationKind::kSwiglu ? 2 : 1;
  up = register_module("up", Projection(options_.width, halves * hidden, options_.bias));
  down = register_module("down", Projection(hidden, options_.width, options_.bias));
}

at::Tensor GptMlpImpl::forward(const at::Tensor& x) {
  const at::Tensor inner = up(x);
  return down(options_.activation == ActivationKind::kSwiglu ? ops::swiglu(inner)
                                                             : ops::gelu_tanh(inner));
}

GptBlockImpl::GptBlockImpl(const GptOptions& options,
                           std::shared_ptr<const ops::RotaryTable> rotary)
    : options_(options), rotary_(std::move(rotary)) {
  reset();
}

void GptBlockImpl::reset() {
  norm1 = register_module("norm1", norm_of(options_));
  attention = register_module("attention", GptAttention(options_, rotary_));
  norm2 = register_module("norm2", norm_of(options_));
  mlp = register_module("mlp", GptMlp(options_));
}

template <typename Attend>
at::Tensor GptBlockImpl::through(const at::Tensor& x, const Attend& attend) {
  const auto [before, normed1] = norm1->add(x, at::Tensor());
  const auto [between, normed2] =
      norm2->add(before, dropped(attend(normed1), options_, is_training()));
  return between + dropped(mlp(normed2), options_, is_training());
}

at::Tensor GptBlockImpl::forward(const at::Tensor& x) {
  return through(x, [&](const at::Tensor& normed) { return attention(normed); });
}

at::Tensor GptBlockImpl::forward_cached(const at::Tensor& x,
                                        KeyValueCache& cache,
                                        std::size_t layer) {
  return through(
      x, [&](const at::Tensor& normed) { return attention->forward_cached(normed, cache, layer); });
}

}  // namespace argosy::text
