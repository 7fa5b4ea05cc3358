#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/formats/file_reader.h"

namespace argosy::datasets {

/// The text of a JSON file of nested arrays of numbers, seen through a window that moves forward:
/// brackets one by one, innermost arrays as a piece.
///
///     text.expect('[');
///     std::string_view numbers = text.array(limit);  // "[0.0, 0.5]"
///
/// `place` and `image` say where one is ("valid, image 17"); they begin every message.
/// Errors: DataError("datasets.mnist_json") with path, offset and place.
class JsonText final {
 public:
  JsonText(const std::string& path, int64_t most_bytes);

  static constexpr int kEnd = -1;
  /// The next character that is not white space, which stays unread; kEnd at the end of the text.
  int peek();
  /// Reads this character. `what` says what it begins or ends.
  void expect(char c, std::string_view what);
  /// Reads an array without arrays inside, its brackets included. kPadding bytes behind the piece
  /// may be read. It holds until the next call. Errors: as above; not an array, more than `most`
  /// bytes.
  std::string_view array(size_t most);
  /// Reads white space to the end of the text, and the file's checksum.
  void finish();

  /// Throws; the offset is that of what was read last.
  [[noreturn]] void fail(const std::string& what) const;

  std::string place{};  ///< a split
  int64_t image = -1;   ///< in it; -1: none
  static constexpr size_t kPadding = 64;

 private:
  bool fill();
  [[nodiscard]] int64_t offset() const {
    return reader_.position() - static_cast<int64_t>(end_ - begin_);
  }

  formats::FileReader reader_;
  int64_t most_bytes_;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // unread part of buffer_
  size_t end_ = 0;
  int64_t last_ = 0;  // offset in the text of what was read last
};

}  // namespace argosy::datasets
