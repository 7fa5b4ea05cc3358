#pragma once

#include <string>

#include "argosy/text/bpe_tokenizer.h"
#include "argosy/text/tokenizer.h"

namespace argosy::text {

/// Reads vocab.json and merges.txt as GPT-2 has them. Tokens of more than one byte that no merge
/// makes are special: "<|endoftext|>".
/// Errors: DataError naming the file, and for merges its line.
[[nodiscard]] Tokenizer read_gpt2_files(const std::string& vocab, const std::string& merges);

/// Writes both files into `folder`, which is made if it is missing.
void write_gpt2_files(const BpeTokenizer& tokenizer, const std::string& folder);

}  // namespace argosy::text
