#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/formats/file_reader.h"

namespace argosy::formats {

struct CsvOptions {
  char separator = ',';
  /// Longest row in bytes. So a file without line ends is an error and not an endless buffer.
  size_t most_row_bytes = size_t{16} << 20;
  /// Most text in all, unpacked. It stops a gzip bomb.
  int64_t most_bytes = int64_t{4} << 30;
};

/// Reads a table in CSV, plain or gzip, row by row; its first row names the columns.
///
///     CsvReader table("training.csv.gz");
///     const size_t image = table.column("Image").value();
///     while (table.next()) { use(table.fields()[image]); }
///
/// Lines end with LF or CRLF; the last line may lack its end. A field in double quotes may hold
/// separators, line ends and quotes (written twice); a quote elsewhere is an error. A byte order
/// mark and empty lines are skipped, as in pandas. Fields are bytes: nothing is trimmed or decoded.
/// Not thread-safe. Memory: the longest row, at least 256 KiB.
/// Errors: DataError with path, line and column; for fields also with the row as index. There is no
/// header, a name stands twice, a row is longer or shorter than the header, a quote stays open, or
/// a limit is exceeded. Also FileReader's errors.
/// Source: RFC 4180.
class CsvReader final {
 public:
  explicit CsvReader(const std::string& path, CsvOptions options = {});

  [[nodiscard]] const std::vector<std::string>& header() const { return header_; }
  /// Returns the position of the column of this name, or nullopt if there is none.
  [[nodiscard]] std::optional<size_t> column(std::string_view name) const;

  /// Moves to the next row. False after the last one.
  bool next();
  /// Returns the row's fields, as many as the header has. They are valid until next().
  [[nodiscard]] std::span<const std::string_view> fields() const { return fields_; }
  /// Returns the number of the row below the header, from 0.
  [[nodiscard]] int64_t row() const { return row_; }

  /// Returns about how many rows the file has, guessed from those so far. It is at most eight times
  /// as many, so that damage makes nobody reserve more.
  [[nodiscard]] size_t expected_rows() const;

  /// Return an error about this row, or about its field in `column`. The caller throws it.
  [[nodiscard]] DataError error(const std::string& what) const;
  [[nodiscard]] DataError error(size_t column, const std::string& what) const;

 private:
  bool read_row();
  bool find_row_end();
  bool fill();
  void check_row_bytes(size_t size) const;
  void split_plain(std::string_view text);
  void split_quoted(char* text, size_t size);
  void add_field(std::string_view field);

  FileReader reader_;
  CsvOptions options_;
  std::vector<std::string> header_{};
  std::vector<std::string_view> fields_{};
  size_t most_fields_;
  int64_t row_ = -1;
  int64_t line_ = 0;       // where the row begins, from 1
  int64_t next_line_ = 1;  // where the one after it does

  std::vector<char> buffer_;
  size_t begin_ = 0;    // unread part of buffer_
  size_t end_ = 0;      //
  size_t scanned_ = 0;  // what find_row_end() has seen of it
  size_t quotes_ = 0;   // and the quotes and
  size_t breaks_ = 0;   // line ends in there
};

}  // namespace argosy::formats
