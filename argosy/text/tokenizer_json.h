#pragma once

#include <string>

#include "argosy/text/tokenizer.h"

namespace argosy::text {

/// Reads a tokenizer.json of Hugging Face that holds a byte-level BPE, and the roles of its special
/// tokens from the tokenizer_config.json beside it, if there is one.
///
/// It reads: models of the type BPE without prefixes, suffixes and dropout; no normalizer; the
/// pre-tokenizers ByteLevel, Split (isolated, or matches alone), Digits and sequences of these;
/// added tokens, except those of single words.
/// Errors: DataError naming what it does not read, because the ids would differ.
[[nodiscard]] Tokenizer read_tokenizer_json(const std::string& path);

}  // namespace argosy::text
