#include "argosy/datasets/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "argosy/base/error.h"

namespace argosy::datasets {
namespace {

constexpr int64_t kFirstBuffer = int64_t{256} * 1024;  // a part of the second-level cache

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/// What peek() gave.
std::string shown(int c) {
  if (c == JsonText::kEnd) {
    return "the end of the file";
  }
  return c >= ' ' && c <= '~' ? fmt::format("'{}'", static_cast<char>(c))
                              : fmt::format("byte {:#04x}", c);
}

/// A small file needs no more than itself, and a byte to see its end by.
size_t first_buffer(const formats::FileReader& reader) {
  return static_cast<size_t>(std::min(reader.most_bytes() + 1, kFirstBuffer));
}

}  // namespace

JsonText::JsonText(const std::string& path, int64_t most_bytes)
    : reader_(path), most_bytes_(most_bytes), buffer_(first_buffer(reader_) + kPadding) {}

void JsonText::fail(const std::string& what) const {
  throw DataError("datasets.mnist_json",
                  fmt::format("{}{}{}{}{}",
                              place,
                              image < 0 ? "" : fmt::format(", image {}", image),
                              place.empty() ? "" : ": ",
                              what,
                              reader_.compressed() ? ", in the unpacked text" : ""),
                  {reader_.path(), last_, image});
}

/// Brings more text behind the unread part, which moves to the front. False at the end of the file.
bool JsonText::fill() {
  const size_t unread = end_ - begin_;
  std::memmove(buffer_.data(), buffer_.data() + begin_, unread);
  begin_ = 0;
  end_ = unread;
  if (unread > buffer_.size() / 2) {
    buffer_.resize(2 * buffer_.size());
  }
  const size_t got = reader_.read({reinterpret_cast<uint8_t*>(buffer_.data()) + end_,  //
                                   buffer_.size() - kPadding - end_});
  end_ += got;
  if (reader_.position() > most_bytes_) {
    fail(
        fmt::format("more than {} bytes of text. If that is right, raise "
                    "MnistJsonOptions::most_bytes",
                    most_bytes_));
  }
  return got > 0;
}

int JsonText::peek() {
  while (true) {
    while (begin_ < end_ && is_space(buffer_[begin_])) {
      ++begin_;
    }
    if (begin_ < end_) {
      last_ = offset();
      return static_cast<unsigned char>(buffer_[begin_]);
    }
    if (!fill()) {
      last_ = offset();
      return kEnd;
    }
  }
}

void JsonText::expect(char c, std::string_view what) {
  const int got = peek();
  if (got != c) {
    fail(fmt::format("expected '{}', {}, got {}", c, what, shown(got)));
  }
  ++begin_;
}

std::string_view JsonText::array(size_t most) {
  const int first = peek();
  if (first != '[') {
    fail(fmt::format("expected '[', a list of numbers, got {}", shown(first)));
  }
  size_t seen = 0;
  while (true) {
    const char* from = buffer_.data() + begin_;
    const void* close = std::memchr(from + seen, ']', end_ - begin_ - seen);
    const size_t size = close == nullptr
                            ? end_ - begin_
                            : static_cast<size_t>(static_cast<const char*>(close) - from) + 1;
    if (size > most) {
      fail(fmt::format("a list of numbers with more than {} bytes of text", most));
    }
    if (close != nullptr) {
      begin_ += size;
      return {from, size};
    }
    seen = size;
    if (!fill()) {
      fail("the file ends in a list of numbers");
    }
  }
}

void JsonText::finish() {
  const int c = peek();
  if (c != kEnd) {
    fail(fmt::format("expected nothing more, got {}", shown(c)));
  }
}

}  // namespace argosy::datasets
