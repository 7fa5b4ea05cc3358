#include "argosy/formats/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "argosy/base/check.h"

namespace argosy::formats {
namespace {

constexpr int64_t kFirstBuffer = int64_t{256} * 1024;  // a part of the second-level cache
constexpr size_t kMostColumns = 65'536;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

const char* find(const char* begin, const char* end, char c) {
  return static_cast<const char*>(std::memchr(begin, c, static_cast<size_t>(end - begin)));
}

size_t count(const char* begin, const char* end, char c) {
  size_t n = 0;
  while ((begin = find(begin, end, c)) != nullptr) {
    ++begin;
    ++n;
  }
  return n;
}

/// A small file needs no more than itself, and a byte to see its end by.
size_t first_buffer(const FileReader& reader) {
  return static_cast<size_t>(std::min(reader.most_bytes() + 1, kFirstBuffer));
}

void check_names(const std::vector<std::string>& header, const CsvReader& reader) {
  std::vector<std::string_view> names(header.begin(), header.end());
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    throw reader.error(fmt::format("the header names the column \"{}\" twice", *twice));
  }
}

}  // namespace

CsvReader::CsvReader(const std::string& path, CsvOptions options)
    : reader_(path), options_(options), most_fields_(kMostColumns), buffer_(first_buffer(reader_)) {
  ARGOSY_CHECK(options.most_row_bytes > 0 && options.most_bytes > 0,
               "formats.csv",
               "limits must be above 0");
  fill();
  if (std::string_view(buffer_.data(), end_).starts_with(kByteOrderMark)) {
    begin_ = scanned_ = kByteOrderMark.size();
  }
  if (!read_row()) {
    throw DataError("formats.csv", "empty: expected a row with the columns' names", {path});
  }
  header_.assign(fields_.begin(), fields_.end());
  check_names(header_, *this);
  most_fields_ = header_.size();
}

std::optional<size_t> CsvReader::column(std::string_view name) const {
  const auto at = std::find(header_.begin(), header_.end(), name);
  return at == header_.end() ? std::nullopt : std::optional<size_t>(at - header_.begin());
}

bool CsvReader::next() {
  if (!read_row()) {
    return false;
  }
  ++row_;
  if (fields_.size() != header_.size()) {
    throw error(fmt::format(
        "expected {} fields as the header has, got {}", header_.size(), fields_.size()));
  }
  return true;
}

size_t CsvReader::expected_rows() const {
  const auto rows = static_cast<double>(row_ + 1);
  const double read = static_cast<double>(reader_.position() - static_cast<int64_t>(end_ - begin_));
  const double all = rows * static_cast<double>(reader_.expected_bytes()) / std::max(read, 1.0);
  return static_cast<size_t>(std::min(all, 8 * rows)) + 1;
}

DataError CsvReader::error(const std::string& what) const {
  return {"formats.csv", fmt::format("line {}: {}", line_, what), {reader_.path(), -1, row_}};
}

DataError CsvReader::error(size_t column, const std::string& what) const {
  return error(fmt::format("column {} (\"{}\"): {}", column + 1, header_.at(column), what));
}

bool CsvReader::read_row() {
  fields_.clear();
  while (find_row_end()) {
    char* text = buffer_.data() + begin_;
    size_t size = scanned_ - begin_;
    const bool quoted = quotes_ > 0;
    check_row_bytes(size);
    begin_ = scanned_ = std::min(scanned_ + 1, end_);
    next_line_ += static_cast<int64_t>(breaks_) + 1;
    if (size > 0 && text[size - 1] == '\r') {
      --size;
    }
    if (size == 0) {
      continue;
    }
    if (quoted) {
      split_quoted(text, size);
    } else {
      split_plain({text, size});
    }
    return true;
  }
  return false;
}

/// Sets scanned_ to the line end after the row at begin_ (end_ where the last line has none), and
/// counts quotes and line ends before it. False when no row is left.
bool CsvReader::find_row_end() {
  line_ = next_line_;
  quotes_ = breaks_ = 0;
  while (true) {
    const char* from = buffer_.data() + scanned_;
    const char* end = buffer_.data() + end_;
    const char* line_end = find(from, end, '\n');
    quotes_ += count(from, line_end == nullptr ? end : line_end, '"');
    scanned_ = static_cast<size_t>((line_end == nullptr ? end : line_end) - buffer_.data());
    if (line_end != nullptr) {
      if (quotes_ % 2 == 0) {
        return true;
      }
      ++breaks_;  // inside quotes
      ++scanned_;
    } else if (!fill()) {
      if (quotes_ % 2 != 0) {
        throw error("a quote is opened in this row and never closed");
      }
      return scanned_ > begin_;
    }
  }
}

void CsvReader::check_row_bytes(size_t size) const {
  if (size > options_.most_row_bytes) {
    throw error(
        fmt::format("the row has more than {} bytes. Is this a CSV file? If it is, raise "
                    "CsvOptions::most_row_bytes",
                    options_.most_row_bytes));
  }
}

/// Brings more text behind the unread part, which moves to the front. False at the end of the file.
bool CsvReader::fill() {
  const size_t unread = end_ - begin_;
  check_row_bytes(unread);
  std::memmove(buffer_.data(), buffer_.data() + begin_, unread);
  scanned_ -= begin_;
  begin_ = 0;
  end_ = unread;
  if (unread > buffer_.size() / 2) {
    buffer_.resize(buffer_.size() * 2);
  }
  const size_t got = reader_.read({reinterpret_cast<uint8_t*>(buffer_.data()) + end_,  //
                                   buffer_.size() - end_});
  end_ += got;
  if (reader_.position() > options_.most_bytes) {
    throw DataError("formats.csv",
                    fmt::format("more than {} bytes of text{}. If that is right, raise "
                                "CsvOptions::most_bytes",
                                options_.most_bytes,
                                reader_.compressed() ? " when unpacked" : ""),
                    {reader_.path()});
  }
  return got > 0;
}

void CsvReader::split_plain(std::string_view text) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  while (const char* separator = find(begin, end, options_.separator)) {
    add_field({begin, static_cast<size_t>(separator - begin)});
    begin = separator + 1;
  }
  add_field({begin, static_cast<size_t>(end - begin)});
}

/// Unquotes in place: a field only becomes shorter.
void CsvReader::split_quoted(char* text, size_t size) {
  const char* end = text + size;
  const char* from = text;
  while (true) {
    if (from == end || *from != '"') {
      const char* separator = find(from, end, options_.separator);
      const char* field_end = separator == nullptr ? end : separator;
      if (find(from, field_end, '"') != nullptr) {
        throw error(fmt::format(
            "field {} has a quote, but does not begin with one: quote all of it, and write the "
            "quote twice",
            fields_.size() + 1));
      }
      add_field({from, static_cast<size_t>(field_end - from)});
      from = field_end;
    } else {
      char* to = text + (from - text);
      const char* field = to;
      ++from;
      while (*from != '"' || (from + 1 < end && from[1] == '"')) {
        from += *from == '"' ? 1 : 0;  // the first of two
        *to++ = *from++;
        ARGOSY_INVARIANT(from < end, "formats.csv");  // quotes are even
      }
      ++from;
      if (from < end && *from != options_.separator) {
        throw error(fmt::format("field {} continues after its closing quote", fields_.size() + 1));
      }
      add_field({field, static_cast<size_t>(to - field)});
    }
    if (from == end) {
      return;
    }
    ++from;  // the separator
  }
}

void CsvReader::add_field(std::string_view field) {
  if (fields_.size() == most_fields_) {
    throw error(fmt::format("expected at most {} fields, got more", most_fields_));
  }
  fields_.push_back(field);
}

}  // namespace argosy::formats
