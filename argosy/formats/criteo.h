#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/formats/file_reader.h"

namespace argosy::formats {

/// What was shown to somebody, and whether it was clicked: lines in columns.
struct ClickBatch {
  static constexpr size_t kNumbers = 13;
  static constexpr size_t kCategories = 26;

  std::vector<float> clicked{};  ///< [n], 0 or 1
  std::vector<float> numbers{};  ///< [n, 13]; NaN: the field is empty
  /// [n, 26]: (column + 1)·2³² + the field's value, so that columns share no id; 0: it is empty.
  std::vector<uint64_t> categories{};

  [[nodiscard]] size_t size() const { return clicked.size(); }
  void clear();
  /// Keeps the first `lines`.
  void resize(size_t lines);
};

/// Lines of a log that were read and not looked into.
struct ClickLines {
  std::string text{};
  int64_t before = 0;  ///< lines of the log before the first
};

/// Reads logs of clicks in the form of Criteo's data sets, plain or gzip: lines of 40 fields with
/// tabs between them: 0 or 1, then 13 whole numbers, then 26 categories of up to eight hexadecimal
/// digits. All but the first may be empty. A blank last line is no line.
///
///     formats::CriteoReader log("day_0.gz");
///     formats::ClickBatch batch;
///     while (log.read(4096, batch) > 0) { …; batch.clear(); }
///
/// Not thread-safe. Memory: 256 KiB beside the batch.
/// Errors: DataError with path, line and column; FileReader's.
/// Source: the readme of Criteo's "Kaggle Display Advertising Challenge" data set.
class CriteoReader final {
 public:
  explicit CriteoReader(const std::string& path);

  /// Appends up to `most` lines. Returns how many; 0 at the end.
  size_t read(size_t most, ClickBatch& to);
  /// Takes up to `most` lines without looking into them, in place of what `to` has. Returns how
  /// many. parse() looks into them, when it is known that they are wanted.
  size_t take(size_t most, ClickLines& to);
  /// Appends the lines that take() took.
  void parse(const ClickLines& lines, ClickBatch& to) const;
  /// Passes over up to `most` lines without looking into them. Returns how many.
  size_t skip(size_t most);
  /// Returns the number of lines that were read or passed over.
  [[nodiscard]] int64_t lines() const { return lines_; }

 private:
  [[nodiscard]] bool next_line(std::string_view& line);
  [[nodiscard]] bool read_more();
  void add(std::string_view line, int64_t number, ClickBatch& to) const;
  [[noreturn]] void fail(int64_t line, size_t column, const std::string& what) const;

  FileReader reader_;
  std::vector<char> buffer_;
  size_t begin_ = 0;  ///< unread part of buffer_
  size_t end_ = 0;
  int64_t lines_ = 0;
};

/// Appends a line of that form, as CriteoReader reads it: what generators of such logs write.
void append_criteo_line(const ClickBatch& batch, size_t row, std::string& text);

}  // namespace argosy::formats
