#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/image/codecs/codecs.h"

// PBM, PGM and PPM, as text (P1, P2, P3) and binary (P4, P5, P6). Source: netpbm's pages pbm(5),
// pgm(5), ppm(5).
namespace argosy::image::codecs {
namespace {

struct PnmHeader {
  int kind = 0;  // the digit behind P
  int64_t height = 0;
  int64_t width = 0;
  int64_t most = 1;  // value of white
  size_t end = 0;    // where the pixels begin

  [[nodiscard]] bool text() const { return kind <= 3; }
  [[nodiscard]] bool bitmap() const { return kind == 1 || kind == 4; }
  [[nodiscard]] int channels() const { return kind == 3 || kind == 6 ? 3 : 1; }
  [[nodiscard]] size_t sample_bytes() const { return most > 255 ? 2 : 1; }
  /// Of a binary file.
  [[nodiscard]] size_t row_bytes() const {
    const auto samples = static_cast<size_t>(width * channels());
    return bitmap() ? (samples + 7) / 8 : samples * sample_bytes();
  }
};

bool is_space(uint8_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/// Reads the numbers of a header or of a text file.
struct Numbers {
  Bytes bytes{};
  size_t at = 0;

  void skip_space() {
    while (at < bytes.size() && (is_space(bytes[at]) || bytes[at] == '#')) {
      if (bytes[at] == '#') {
        while (at < bytes.size() && bytes[at] != '\n' && bytes[at] != '\r') {
          ++at;
        }
      } else {
        ++at;
      }
    }
  }
  /// nullopt: no number, or one of more than 9 digits.
  std::optional<int64_t> next(size_t most_digits = 9) {
    skip_space();
    int64_t value = 0;
    const size_t begin = at;
    while (at < bytes.size() && bytes[at] >= '0' && bytes[at] <= '9' && at - begin < most_digits) {
      value = value * 10 + (bytes[at++] - '0');
    }
    const bool ends = most_digits == 1 || at == bytes.size() || bytes[at] < '0' || bytes[at] > '9';
    return at > begin && ends ? std::optional(value) : std::nullopt;
  }
};

[[noreturn]] void fail(const std::string& what, std::string_view name, size_t at) {
  throw DataError("image.pnm", what, {std::string(name), static_cast<int64_t>(at)});
}

PnmHeader read_header(Bytes bytes, std::string_view name) {
  PnmHeader header;
  header.kind = bytes[1] - '0';  // sniff() has seen it
  Numbers numbers{bytes, 2};
  const auto number = [&](const char* of) {
    const std::optional<int64_t> value = numbers.next();
    if (!value) {
      fail(fmt::format("damaged header: expected a number for the {}", of), name, numbers.at);
    }
    return *value;
  };
  header.width = number("width");
  header.height = number("height");
  if (!header.bitmap()) {
    header.most = number("largest value");
    if (header.most < 1 || header.most > 65535) {
      fail(fmt::format("damaged header: expected a largest value from 1 to 65535, got {}",
                       header.most),
           name,
           numbers.at);
    }
  }
  header.end = std::min(numbers.at + 1, bytes.size());  // one space ends it
  return header;
}

/// A sample as 0…255, rounded. Values above the largest are white.
uint8_t scaled(int64_t value, int64_t most) {
  return static_cast<uint8_t>((std::min(value, most) * 510 + most) / (2 * most));
}

/// One row of a binary file.
void read_row(const PnmHeader& header, const uint8_t* from, uint8_t* to) {
  const auto samples = static_cast<size_t>(header.width * header.channels());
  for (size_t i = 0; i < samples; ++i) {
    if (header.bitmap()) {
      to[i] = (from[i / 8] >> (7 - i % 8) & 1) != 0 ? 0 : 255;
    } else if (header.most == 255) {
      to[i] = from[i];
    } else if (header.sample_bytes() == 1) {
      to[i] = scaled(from[i], header.most);
    } else {
      to[i] = scaled(from[2 * i] << 8 | from[2 * i + 1], header.most);
    }
  }
}

/// One row of a text file; false: it ends or goes wrong within.
bool read_row(const PnmHeader& header, Numbers& numbers, uint8_t* to) {
  const int64_t samples = header.width * header.channels();
  for (int64_t i = 0; i < samples; ++i) {
    const std::optional<int64_t> value = numbers.next(header.bitmap() ? 1 : 9);
    if (!value) {
      return false;
    }
    to[i] =
        header.bitmap() ? static_cast<uint8_t>(*value != 0 ? 0 : 255) : scaled(*value, header.most);
  }
  return true;
}

/// Rows that the file can hold at most; all that are there when it is binary.
int64_t rows_in(const PnmHeader& header, size_t bytes) {
  const size_t left = bytes - header.end;
  const auto samples = static_cast<size_t>(header.width * header.channels());
  const size_t least = !header.text()    ? header.row_bytes()
                       : header.bitmap() ? samples
                                         : 2 * samples - 1;
  return std::min(header.height, static_cast<int64_t>(left / least));
}

}  // namespace

Image decode_pnm(Bytes bytes, const DecodeOptions& options) {
  const PnmHeader header = read_header(bytes, options.name);
  const Size size =
      checked_size(header.height, header.width, options.most_pixels, "image.pnm", options.name);
  const int64_t rows = rows_in(header, bytes.size());
  const auto ended = [&](int64_t came, size_t at) {
    if (options.damaged != Damaged::kAccept) {
      fail("truncated or damaged; " + rows_that_came(came, size.height), options.name, at);
    }
  };
  if (rows < size.height && !header.text()) {
    ended(rows, bytes.size());
  }
  if (rows < size.height && header.text() && options.damaged != Damaged::kAccept) {
    fail("truncated: fewer bytes than pixels", options.name, bytes.size());
  }
  Image image = new_image(size, header.channels() == 3 ? Order::kRgb : Order::kGray, options);
  Numbers numbers{bytes, header.end};
  for (int y = 0; y < rows; ++y) {
    uint8_t* const to = image.row<uint8_t>(y);
    if (!header.text()) {
      read_row(header, bytes.data() + header.end + static_cast<size_t>(y) * header.row_bytes(), to);
    } else if (!read_row(header, numbers, to)) {
      ended(y, numbers.at);
      break;
    }
  }
  return to_mode(std::move(image), options.mode);
}

ImageInfo probe_pnm(Bytes bytes, std::string_view name) {
  const PnmHeader header = read_header(bytes, name);
  return {Format::kPnm,
          checked_size(header.height, header.width, Image::kMostPixels, "image.pnm", name),
          header.channels(),
          header.bitmap() ? 1 : static_cast<int>(8 * header.sample_bytes())};
}

}  // namespace argosy::image::codecs
