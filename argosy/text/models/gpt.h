#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/pimpl.h>

#include "argosy/engine/block_calls.h"
#include "argosy/text/models/gpt_block.h"
#include "argosy/text/models/gpt_options.h"
#include "argosy/text/models/key_value_cache.h"
#include "argosy/text/models/layers.h"

namespace argosy::text {

/// Calls a block; see GptImpl::set_block_runner().
using BlockRunner = std::function<at::Tensor(const GptBlock& block, const at::Tensor& x)>;

/// A decoder-only Transformer: GPT-2's or Llama's kind of block, as GptOptions says.
///
///     text::Gpt model(text::gpt_options("gpt:vocab_size=1000,layers=8,width=512,heads=8"));
///     at::Tensor loss = model->loss(tokens, targets);
///     loss.backward();
///
/// Parameters, with C = width, D = C / heads, F = hidden:
///
///     embed.weight                 [vocab_size, C]; also the head's, if it is tied
///     positions.weight             [context, C]; learned positions only
///     blocks.<i>.norm1.weight      [C]; and .bias, as for norm2 and norm
///     blocks.<i>.attention.qkv     .weight [(heads + 2 kv_heads) D, C]: queries, keys, values
///     blocks.<i>.attention.out     .weight [C, C]
///     blocks.<i>.norm2.weight      [C]
///     blocks.<i>.mlp.up            .weight [F, C], or with SwiGLU [2F, C]: gate, then up
///     blocks.<i>.mlp.down          .weight [C, F]
///     norm.weight                  [C]
///     head.weight                  [vocab_size, C]; only if it is not tied
///
/// A new model has the initial weights of the seed of the last seed_everything(): see initialize().
/// Made by engine::deferred<text::Gpt>(options), it has no memory until its weights are used, and
/// parallel::fully_shard() lets each rank draw its part only.
/// Errors: UsageError for options (GptOptions::validate()), and for tokens that are not [N, T] of
/// int64, are more than `context` or, on the CPU, outside the vocabulary.
/// Not thread-safe in training mode with dropout; else forward() may run in several threads.
class GptImpl final : public torch::nn::Cloneable<GptImpl>, public engine::BlockCalls {
 public:
  explicit GptImpl(const GptOptions& options = {});
  void reset() override;

  /// Returns the logits of the token after each. Shape: [N, T] → [N, T, vocab_size].
  at::Tensor forward(const at::Tensor& tokens);

  /// Returns the mean cross entropy of `targets` [N, T], the tokens that follow, as 0-dim f32.
  /// Targets of -100 do not count. It is that of forward()'s logits, but all of them are never in
  /// memory: see ops::token_loss().
  at::Tensor loss(const at::Tensor& tokens, const at::Tensor& targets);

  /// Returns the logits of tokens that follow those in `cache`, and adds these to it.
  /// Shape: as forward(), whose values they are, up to rounding.
  at::Tensor forward_cached(const at::Tensor& tokens, KeyValueCache& cache);
  /// The same for the last token only: [N, T] → [N, vocab_size].
  at::Tensor next_logits(const at::Tensor& tokens, KeyValueCache& cache);

  /// Draws the initial weights: see draw_initial(). The model may be on any device and of any
  /// floating type; one that is deferred stays so.
  void initialize(uint64_t seed);

  /// Makes forward() and loss() call each block through `runner`, for instance to recompute it in
  /// backward. Null: call it as it is.
  ///
  ///     model->set_block_runner([](const text::GptBlock& block, const at::Tensor& x) {
  ///       return parallel::recompute(block, x);
  ///     });
  void set_block_runner(BlockRunner runner) { runner_ = std::move(runner); }

  /// The same by modules of any kind.
  void run_blocks_by(engine::BlockCalls::Runner runner) override;
  [[nodiscard]] std::vector<std::shared_ptr<torch::nn::Module>> called_blocks() const override;

  [[nodiscard]] const GptOptions& options() const { return options_; }
  /// Block i: `blocks->ptr<GptBlockImpl>(i)`.
  torch::nn::ModuleList blocks{nullptr};

 private:
  /// Embeddings of tokens from `position` on.
  at::Tensor embedded(const at::Tensor& tokens, int64_t position);
  /// What the head gets.
  at::Tensor hidden(const at::Tensor& tokens);
  at::Tensor hidden_cached(const at::Tensor& tokens, KeyValueCache& cache);
  [[nodiscard]] const at::Tensor& head_weight() const;

  GptOptions options_;
  BlockRunner runner_{};
  std::shared_ptr<const ops::RotaryTable> rotary_;
  TokenTable embed_{nullptr}, positions_{nullptr};
  TokenNorm norm_{nullptr};
  Projection head_{nullptr};
};

/// Holder of a GptImpl; copies refer to the same model. `Gpt(GptOptions::llama())`.
class Gpt : public torch::nn::ModuleHolder<GptImpl> {
 public:
  using torch::nn::ModuleHolder<GptImpl>::ModuleHolder;
  using Impl [[maybe_unused]] = GptImpl;
  explicit Gpt(const GptOptions& options)
      : ModuleHolder<GptImpl>(std::make_shared<GptImpl>(options)) {}
};

}  // namespace argosy::text
