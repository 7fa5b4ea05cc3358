#include "argosy/text/document_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include "argosy/text/utf8.h"

namespace argosy::text {

DocumentReader::DocumentReader(const std::string& path, Documents documents, size_t piece_bytes)
    : reader_(path), documents_(documents), most_(piece_bytes) {}

/// Forgets what was given out, and reads until the buffer has more than a piece or the file ends.
void DocumentReader::fill() {
  buffer_.erase(0, used_);
  used_ = 0;
  const size_t had = buffer_.size();
  if (at_end_ || had > most_) {
    return;
  }
  buffer_.resize(most_ + 1);
  const size_t got =
      reader_.read({reinterpret_cast<uint8_t*>(buffer_.data()) + had, buffer_.size() - had});
  at_end_ = got < buffer_.size() - had;
  buffer_.resize(had + got);
  if (at_end_) {
    std::array<uint8_t, 1> nothing{};
    (void)reader_.read(nothing);  // a gzip member's checksum is verified by this call
  }
}

/// Where a piece ends that has to end within the buffer, of which nothing is given out yet.
size_t DocumentReader::cut() const {
  const std::string_view text = std::string_view(buffer_).substr(0, most_);
  size_t last_break = std::string_view::npos;
  for (size_t at = text.rfind('\n'); at != std::string_view::npos && at > 0;
       at = text.rfind('\n', at - 1)) {
    const size_t end = at + 1;
    last_break = last_break == std::string_view::npos ? end : last_break;
    if (trailing_space(text.substr(0, at)) == 0 &&
        leading_space(std::string_view(buffer_).substr(end)) == 0) {
      return end;
    }
  }
  if (last_break != std::string_view::npos) {
    return last_break;
  }
  size_t end = text.size();
  while (end > 0 && end + 4 > text.size() &&
         (static_cast<unsigned char>(buffer_[end]) & 0xC0U) == 0x80U) {
    --end;  // in the middle of a character
  }
  return end == 0 ? text.size() : end;
}

std::optional<DocumentReader::Piece> DocumentReader::next() {
  const bool lines = documents_ == Documents::kLines;
  while (true) {
    size_t line = lines ? buffer_.find('\n', used_) : std::string::npos;
    if (line == std::string::npos) {
      fill();
      line = lines ? buffer_.find('\n') : std::string::npos;
    }
    if (used_ == buffer_.size()) {
      return std::nullopt;
    }
    const bool whole = line != std::string::npos || (at_end_ && buffer_.size() <= most_);
    const size_t end = line != std::string::npos ? line : whole ? buffer_.size() : cut();
    std::string_view text = std::string_view(buffer_).substr(used_, end - used_);
    used_ = line != std::string::npos ? line + 1 : end;
    if (lines && whole && text.ends_with('\r')) {
      text.remove_suffix(1);
    }
    const bool continues = std::exchange(gave_some_, !whole);
    if (!text.empty() || continues) {
      return Piece{text, whole};
    }
  }
}

}  // namespace argosy::text
