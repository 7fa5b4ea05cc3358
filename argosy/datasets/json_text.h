#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/formats/file_reader.h"

namespace argosy::datasets {

/// Reads a JSON file of nested arrays of numbers through a window that moves forward. It reads
/// brackets one by one, and each innermost array as one piece.
///
///     text.expect('[');
///     std::string_view numbers = text.array(limit);  // "[0.0, 0.5]"
///
/// `place` and `image` name the current position ("valid, image 17") and begin every message.
/// Errors: DataError("datasets.mnist_json") with path, offset and place.
class JsonText final {
 public:
  JsonText(const std::string& path, int64_t most_bytes);

  static constexpr int kEnd = -1;
  /// Returns the next character that is not white space, and leaves it unread. kEnd: the text has
  /// ended.
  int peek();
  /// Reads this character. `what` names, for messages, what it begins or ends.
  void expect(char c, std::string_view what);
  /// Reads an array without arrays inside, with its brackets. The piece is valid until the next
  /// call, and kPadding bytes after it may be read. Errors: as above; also when it is not an array
  /// or has more than `most` bytes.
  std::string_view array(size_t most);
  /// Reads white space to the end of the text, and the file's checksum.
  void finish();

  /// Throws a DataError with the offset of the last thing read.
  [[noreturn]] void fail(const std::string& what) const;

  std::string place{};  ///< a split
  int64_t image = -1;   ///< number of the image in `place`; -1: none
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
