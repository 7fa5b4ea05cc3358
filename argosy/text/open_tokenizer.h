#pragma once

#include <string>

#include "argosy/text/tokenizer.h"

namespace argosy::text {

/// Opens a tokenizer by what a file or folder is:
///
/// - tokenizer.json of Hugging Face, with a byte-level BPE (GPT-2, Llama 3);
/// - vocab.json with merges.txt beside it, either of the two (GPT-2);
/// - a .model of sentencepiece (Llama 2, T5);
/// - a folder with one of these, in this order;
/// - the word "bytes", unless there is such a file: byte_tokenizer().
///
/// Errors: DataError naming the file, what was expected, and what it has.
[[nodiscard]] Tokenizer open_tokenizer(const std::string& path);

}  // namespace argosy::text
