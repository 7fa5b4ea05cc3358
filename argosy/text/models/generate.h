#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include <ATen/core/Tensor.h>

#include "argosy/text/models/gpt.h"

namespace argosy::text {

/// How generate() chooses tokens. Names are those of transformers.
struct GenerateOptions {
  int64_t max_new_tokens = 64;
  double temperature = 1;  ///< logits are divided by it; 0: always the most likely token
  int64_t top_k = 0;       ///< only the k most likely tokens; 0: all
  double top_p = 1;        ///< only the fewest tokens whose probabilities reach this sum
  uint64_t seed = 0;       ///< of the random numbers; unused with temperature 0
  /// A sequence ends after this token. The rest of its row is filled with it.
  std::optional<int64_t> stop_token{};
  /// Called with the tokens [N] of each step as soon as they are chosen.
  std::function<void(const at::Tensor& tokens)> on_tokens{};

  /// Errors: UsageError that names the field.
  void validate() const;
};

/// Returns the tokens of `prompts` and those that the model continues them with.
///
///     text::generate(model, tokens, {.max_new_tokens = 100, .temperature = 0.8, .top_k = 40});
///
/// Shape: prompts [N, T] of int64 → [N, T + max_new_tokens], or fewer if all sequences have ended.
/// The draw of a token depends on the seed, its row and its place only. So the same weights,
/// prompts and options give the same tokens. It computes without gradients, as in evaluation mode,
/// with a KeyValueCache; the model's mode is what it was afterwards.
/// Errors: UsageError for options, and for prompts and new tokens beyond the model's context.
/// Source: top-p: Holtzman et al., "The curious case of neural text degeneration", 2020; the order
/// temperature, top_k, top_p is transformers'.
[[nodiscard]] at::Tensor generate(const Gpt& model,
                                  const at::Tensor& prompts,
                                  const GenerateOptions& options = {});

}  // namespace argosy::text
