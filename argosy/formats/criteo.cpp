#include "argosy/formats/criteo.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "argosy/base/error.h"

namespace argosy::formats {
namespace {

constexpr size_t kLongestLine = size_t{64} << 10;
constexpr size_t kBuffer = size_t{256} << 10;
constexpr size_t kFields = 1 + ClickBatch::kNumbers + ClickBatch::kCategories;

template <typename Number>
bool parse_field(std::string_view text, Number& number, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

void ClickBatch::clear() {
  clicked.clear();
  numbers.clear();
  categories.clear();
}

void ClickBatch::resize(size_t lines) {
  clicked.resize(lines);
  numbers.resize(lines * kNumbers);
  categories.resize(lines * kCategories);
}

CriteoReader::CriteoReader(const std::string& path) : reader_(path), buffer_(kBuffer) {}

void CriteoReader::fail(int64_t line, size_t column, const std::string& what) const {
  throw DataError("formats.criteo",
                  fmt::format("line {}, column {}: {}", line, column + 1, what),
                  {.path = reader_.path()});
}

size_t CriteoReader::read(size_t most, ClickBatch& to) {
  size_t count = 0;
  for (std::string_view line; count < most && next_line(line); ++count, ++lines_) {
    add(line, lines_ + 1, to);
  }
  return count;
}

size_t CriteoReader::take(size_t most, ClickLines& to) {
  to.text.clear();
  to.before = lines_;
  size_t count = 0;
  for (std::string_view line; count < most && next_line(line); ++count, ++lines_) {
    to.text += line;
    to.text += '\n';
  }
  return count;
}

void CriteoReader::parse(const ClickLines& lines, ClickBatch& to) const {
  int64_t number = lines.before;
  for (std::string_view rest = lines.text; !rest.empty();) {
    const size_t end = rest.find('\n');
    add(rest.substr(0, end), ++number, to);
    rest.remove_prefix(end + 1);
  }
}

size_t CriteoReader::skip(size_t most) {
  size_t count = 0;
  for (std::string_view line; count < most && next_line(line); ++count, ++lines_) {
  }
  return count;
}

/// False: the file has no more.
bool CriteoReader::read_more() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const size_t got =
      reader_.read({reinterpret_cast<uint8_t*>(buffer_.data()) + end_, buffer_.size() - end_});
  end_ += got;
  return got > 0;
}

/// False at the end. The line is valid until the next call.
bool CriteoReader::next_line(std::string_view& line) {
  for (;;) {
    const char* const from = buffer_.data() + begin_;
    const auto* const newline = static_cast<const char*>(std::memchr(from, '\n', end_ - begin_));
    if (newline != nullptr) {
      line = {from, static_cast<size_t>(newline - from)};
      begin_ += line.size() + 1;
      break;
    }
    if (end_ - begin_ > kLongestLine) {
      fail(lines_ + 1, 0, fmt::format("expected a line of at most {} bytes", kLongestLine));
    }
    if (read_more()) {
      continue;
    }
    if (end_ == 0) {
      return false;
    }
    line = {buffer_.data(), end_};  // the last line lacks its end
    begin_ = end_;
    break;
  }
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  if (line.empty() && begin_ == end_ && !read_more()) {
    return false;  // a blank last line
  }
  return true;
}

void CriteoReader::add(std::string_view line, int64_t number, ClickBatch& to) const {
  for (size_t column = 0; column < kFields; ++column) {
    const size_t tab = line.find('\t');
    const std::string_view field = line.substr(0, tab);
    if ((tab == std::string_view::npos) != (column + 1 == kFields)) {
      fail(number, column, fmt::format("expected {} fields with tabs between them", kFields));
    }
    if (column == 0) {
      if (field != "0" && field != "1") {
        fail(number, column, fmt::format("expected 0 or 1, got \"{}\"", field.substr(0, 16)));
      }
      to.clicked.push_back(field == "1" ? 1.0F : 0.0F);
    } else if (column <= ClickBatch::kNumbers) {
      int64_t whole = 0;
      if (!field.empty() && !parse_field(field, whole, 10)) {
        fail(number,
             column,
             fmt::format("expected a whole number, got \"{}\"", field.substr(0, 32)));
      }
      to.numbers.push_back(field.empty() ? std::numeric_limits<float>::quiet_NaN()
                                         : static_cast<float>(whole));
    } else {
      uint32_t value = 0;
      if (!field.empty() && !parse_field(field, value, 16)) {
        fail(number,
             column,
             fmt::format("expected up to 8 hexadecimal digits, got \"{}\"", field.substr(0, 32)));
      }
      const uint64_t place = column - ClickBatch::kNumbers;
      to.categories.push_back(field.empty() ? 0 : (place << 32U) | value);
    }
    line.remove_prefix(tab == std::string_view::npos ? line.size() : tab + 1);
  }
}

void append_criteo_line(const ClickBatch& batch, size_t row, std::string& text) {
  text += batch.clicked[row] > 0 ? '1' : '0';
  for (size_t i = 0; i < ClickBatch::kNumbers; ++i) {
    text += '\t';
    const float number = batch.numbers[row * ClickBatch::kNumbers + i];
    if (!std::isnan(number)) {
      fmt::format_to(std::back_inserter(text), "{}", std::llround(number));
    }
  }
  for (size_t i = 0; i < ClickBatch::kCategories; ++i) {
    text += '\t';
    const uint64_t id = batch.categories[row * ClickBatch::kCategories + i];
    if (id != 0) {
      fmt::format_to(std::back_inserter(text), "{:08x}", id & 0xffffffffU);
    }
  }
  text += '\n';
}

}  // namespace argosy::formats
