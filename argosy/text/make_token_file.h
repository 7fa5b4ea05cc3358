#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "argosy/text/tokenizer.h"

namespace argosy::text {

/// What is a document.
enum class Documents : uint8_t {
  kFiles,  ///< each file
  kLines   ///< each line that is not empty
};

/// How far make_token_file() is.
struct TokenFileProgress {
  int64_t bytes = 0;        ///< of text that are done
  int64_t total_bytes = 0;  ///< of all files, as they are on the disk
  int64_t tokens = 0;
  int64_t documents = 0;
  std::string file{};  ///< the one at hand
};

struct MakeTokenFileOptions {
  Documents documents = Documents::kFiles;
  /// kPlain for text of strangers, which may name special tokens.
  SpecialText special_text = SpecialText::kIds;
  bool bos = false;  ///< begin each document with the token for it
  /// A longer document is encoded in pieces of at most so many bytes, which bounds the memory.
  size_t piece_bytes = size_t{4} << 20;
  /// Of a folder and those in it, the files with one of these endings are read, in the order of
  /// their paths. A file that is named is read whatever its ending is.
  std::vector<std::string> endings{".txt", ".txt.gz"};
  /// Called after each piece, and at the end.
  std::function<void(const TokenFileProgress& progress)> progress{};
};

/// What make_token_file() has read and written.
struct MadeTokenFile {
  int64_t files = 0;
  int64_t documents = 0;
  int64_t tokens = 0;
  int64_t bytes = 0;  ///< of text
};

/// Writes a token file of the documents in text files, or in folders of them. Files may be packed
/// by gzip. Each document ends with the tokenizer's end of text.
///
///     text::make_token_file({"books"}, "books.tokens", text::open_tokenizer("gpt2"));
///
/// The ids are those of whole documents for the tokenizers of GPT-2 and Llama 3, also where a
/// document is encoded in pieces; see DocumentReader. Those that put a space in front of each text
/// (sentencepiece's) do so for each piece. The file appears whole or not at all.
/// Errors: UsageError for no paths and for options; DataError for a path that cannot be read, for a
/// folder without such files, and as of TokenFileWriter.
/// Cost: 20 MB of text per second; memory: some times piece_bytes.
MadeTokenFile make_token_file(const std::vector<std::string>& paths,
                              const std::string& out,
                              const Tokenizer& tokenizer,
                              const MakeTokenFileOptions& options = {});

}  // namespace argosy::text
