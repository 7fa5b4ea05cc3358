#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "argosy/formats/file_reader.h"
#include "argosy/text/make_token_file.h"

namespace argosy::text {

/// Reads the documents of a text file, long ones in pieces.
///
/// A piece ends behind a line break that stands between characters other than white space, where
/// the tokenizers of GPT-2 and Llama 3 begin a new word anyway. A piece without such a place ends
/// behind its last line break, or else behind its last whole character.
class DocumentReader final {
 public:
  DocumentReader(const std::string& path, Documents documents, size_t piece_bytes);

  struct Piece {
    std::string_view text{};  ///< valid until the next next()
    bool ends = false;        ///< it is the last of its document
  };
  /// nullopt: the file is at its end.
  [[nodiscard]] std::optional<Piece> next();
  /// Returns the bytes of text that were read.
  [[nodiscard]] int64_t position() const { return reader_.position(); }

 private:
  void fill();
  [[nodiscard]] size_t cut() const;

  formats::FileReader reader_;
  Documents documents_;
  size_t most_;  // bytes of a piece
  std::string buffer_{};
  size_t used_ = 0;  // of buffer_, given out already
  bool at_end_ = false;
  bool gave_some_ = false;  // of the document at hand
};

}  // namespace argosy::text
