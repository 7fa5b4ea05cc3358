#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "argosy/text/models/generate.h"
#include "argosy/text/tokenizer.h"

namespace argosy::text {

/// Gets a text piece by piece, each of whole characters where the text is UTF-8.
using OnText = std::function<void(std::string_view piece)>;

/// Returns `prompt` and what the model continues it with, until an end of text or
/// options.max_new_tokens.
///
///     text::generate_text(model, tokenizer, "In the beginning", {.temperature = 0.8},
///                         [](std::string_view piece) { fmt::print("{}", piece); });
///
/// `on_text` gets the new text as it comes. An empty prompt is the end of a text, behind which
/// another one begins. options.stop_token is the tokenizer's, unless it is set.
/// Errors: UsageError for an empty prompt with a tokenizer that has no end of text, and for a
/// tokenizer of more tokens than the model has; those of generate().
std::string generate_text(const Gpt& model,
                          const Tokenizer& tokenizer,
                          const std::string& prompt,
                          const GenerateOptions& options = {},
                          const OnText& on_text = {});

}  // namespace argosy::text
