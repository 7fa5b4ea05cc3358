#include "argosy/text/models/gpt.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/engine/deferred.h"
#include "argosy/engine/seed.h"
#include "argosy/text/models/initial_weights.h"
#include "argosy/text/ops/linear.h"
#include "argosy/text/ops/token_loss.h"

namespace argosy::text {
namespace {

constexpr const char* kGpt = "text.Gpt";

void check_tokens(const at::Tensor& tokens, const GptOptions& options, int64_t position) {
  ARGOSY_CHECK(
      tokens.defined() && tokens.dim() == 2 && tokens.scalar_type() == at::kLong &&
          tokens.numel() > 0,
      kGpt,
      "expected tokens [N, T] of Long, got {}{}",
      shape_and_type(tokens),
      tokens.defined() && tokens.dim() == 1 ? ". Use tokens.unsqueeze(0) for one sequence" : "");
  ARGOSY_CHECK(position + tokens.size(1) <= options.context,
               kGpt,
               "{} tokens are more than the model's context of {}",
               position + tokens.size(1),
               options.context);
  if (!tokens.is_cpu()) {
    return;
  }
  const at::Tensor list = tokens.contiguous();
  for (const int64_t token :
       std::span(list.data_ptr<int64_t>(), static_cast<std::size_t>(list.numel()))) {
    ARGOSY_CHECK(token >= 0 && token < options.vocab_size,
                 kGpt,
                 "token {} is outside the vocabulary of {} tokens (0 to {})",
                 token,
                 options.vocab_size,
                 options.vocab_size - 1);
  }
}

}  // namespace

GptImpl::GptImpl(const GptOptions& options) : options_(options) {
  options_.validate();
  if (options_.positions == PositionKind::kRotary) {
    rotary_ = std::make_shared<const ops::RotaryTable>(
        ops::rotary_table(options_.context,
                          options_.head_width(),
                          options_.rope_theta,
                          {.factor = options_.rope_factor,
                           .original_context = options_.rope_original,
                           .low = options_.rope_low,
                           .high = options_.rope_high}));
  }
  reset();  // final class: the call is not virtual dispatch into a half-built object
}

void GptImpl::reset() {
  const bool centered = options_.norm == NormKind::kLayerNorm;
  embed_ = register_module("embed", TokenTable(options_.vocab_size, options_.width));
  positions_ = nullptr;
  if (options_.positions == PositionKind::kLearned) {
    positions_ = register_module("positions", TokenTable(options_.context, options_.width));
  }
  blocks = register_module("blocks", torch::nn::ModuleList());
  for (int64_t i = 0; i < options_.layers; ++i) {
    blocks->push_back(GptBlock(options_, rotary_));
  }
  norm_ = register_module(
      "norm",
      TokenNorm(options_.width,
                centered && options_.bias,
                ops::TokenNormOptions{.centered = centered, .epsilon = options_.norm_epsilon}));
  head_ = nullptr;
  if (!options_.tied) {
    head_ = register_module("head",
                            Projection(options_.width, options_.vocab_size, /*has_bias=*/false));
  }
  initialize(engine::base_seed());
}

void GptImpl::initialize(uint64_t seed) {
  for (const auto& item : named_parameters()) {
    engine::draw_values(
        item.value(),
        [options = options_, seed, name = item.key()](int64_t first, std::span<float> values) {
          draw_initial(options, seed, name, first, values);
        },
        fmt::format("text.draw_initial {} {} {}", to_string(options_), seed, item.key()));
  }
}

const at::Tensor& GptImpl::head_weight() const {
  return head_.is_empty() ? embed_->weight : head_->weight;
}

at::Tensor GptImpl::embedded(const at::Tensor& tokens, int64_t position) {
  check_tokens(tokens, options_, position);
  at::Tensor x = embed_(tokens);
  if (!positions_.is_empty()) {
    x = x + positions_->weight.narrow(0, position, tokens.size(1));
  }
  return is_training() && options_.dropout > 0 ? at::dropout(x, options_.dropout, true) : x;
}

void GptImpl::run_blocks_by(engine::BlockCalls::Runner runner) {
  if (runner == nullptr) {
    return set_block_runner(nullptr);
  }
  set_block_runner([runner = std::move(runner)](const GptBlock& block, const at::Tensor& x) {
    return runner(
        *block, [block](const at::Tensor& y) { return block.ptr()->forward(y); }, x);
  });
}

std::vector<std::shared_ptr<torch::nn::Module>> GptImpl::called_blocks() const {
  return blocks->children();
}

at::Tensor GptImpl::hidden(const at::Tensor& tokens) {
  at::Tensor x = embedded(tokens, 0);
  for (std::size_t i = 0; i < blocks->size(); ++i) {
    const GptBlock block(blocks->ptr<GptBlockImpl>(i));
    x = runner_ ? runner_(block, x) : block.ptr()->forward(x);
  }
  return norm_(x);
}

at::Tensor GptImpl::forward(const at::Tensor& tokens) {
  return ops::linear(hidden(tokens), head_weight(), at::Tensor());
}

at::Tensor GptImpl::loss(const at::Tensor& tokens, const at::Tensor& targets) {
  ARGOSY_CHECK(targets.defined() && targets.scalar_type() == at::kLong && tokens.defined() &&
                   targets.sizes() == tokens.sizes(),
               kGpt,
               "expected targets of Long in the shape of the tokens {}, got {}",
               shape(tokens),
               shape_and_type(targets));
  const at::Tensor x = hidden(tokens);
  return ops::token_loss(x.flatten(0, 1), head_weight(), targets.flatten());
}

at::Tensor GptImpl::hidden_cached(const at::Tensor& tokens, KeyValueCache& cache) {
  at::Tensor x = embedded(tokens, cache.length());
  for (std::size_t i = 0; i < blocks->size(); ++i) {
    x = blocks->ptr<GptBlockImpl>(i)->forward_cached(x, cache, i);
  }
  cache.advance(tokens.size(1));
  return x;
}

at::Tensor GptImpl::forward_cached(const at::Tensor& tokens, KeyValueCache& cache) {
  return ops::linear(norm_(hidden_cached(tokens, cache)), head_weight(), at::Tensor());
}

at::Tensor GptImpl::next_logits(const at::Tensor& tokens, KeyValueCache& cache) {
  const at::Tensor last = hidden_cached(tokens, cache).select(1, -1).contiguous();
  return ops::linear(norm_(last), head_weight(), at::Tensor());
}

}  // namespace argosy::text
