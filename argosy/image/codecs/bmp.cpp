#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <string>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/image/codecs/codecs.h"

// Source: Microsoft's pages on BITMAPFILEHEADER, BITMAPCOREHEADER, BITMAPINFOHEADER,
// BITMAPV5HEADER.
namespace argosy::image::codecs {
namespace {

constexpr size_t kFileHeader = 14;
constexpr uint32_t kCoreHeader = 12;
constexpr uint32_t kPlain = 0;  // compression: none
constexpr uint32_t kMasks = 3;  // none, with masks of the channels
constexpr uint32_t kAlphaMasks = 6;

/// Where a channel stands in a pixel.
struct Field {
  uint32_t mask = 0;
  [[nodiscard]] uint8_t of(uint32_t pixel) const {
    const int shift = std::countr_zero(mask);
    const uint64_t most = mask >> shift;
    return static_cast<uint8_t>(uint64_t{(pixel & mask) >> shift} * 255 / most);
  }
};

struct BmpHeader {
  int64_t height = 0;
  int64_t width = 0;
  bool from_top = false;
  uint32_t bits = 0;
  size_t pixels = 0;              // offset
  std::array<Field, 4> fields{};  // red, green, blue, alpha, of 16 and 32 bits
  std::array<std::array<uint8_t, 3>, 256> palette{};
  bool gray = false;  // a palette of grays

  [[nodiscard]] bool has_palette() const { return bits <= 8; }
  [[nodiscard]] bool has_alpha() const { return fields[3].mask != 0; }
  [[nodiscard]] size_t row_bytes() const {
    return (static_cast<size_t>(width) * bits + 31) / 32 * 4;
  }
};

[[noreturn]] void fail(const std::string& what, std::string_view name) {
  throw DataError("image.bmp", what, {std::string(name)});
}

bool is_one_run(uint32_t mask) {
  return mask != 0 && std::has_single_bit((uint64_t{mask} >> std::countr_zero(mask)) + 1);
}

/// Three masks, with kAlphaMasks or a header of version 3 a fourth, begin 40 bytes into the header.
void read_fields(Bytes bytes,
                 uint32_t compression,
                 uint32_t header_bytes,
                 BmpHeader& header,
                 std::string_view name) {
  if (compression == kPlain) {
    header.fields = header.bits == 16 ? std::array<Field, 4>{{{0x7c00}, {0x03e0}, {0x001f}, {0}}}
                                      : std::array<Field, 4>{{{0xff0000}, {0xff00}, {0xff}, {0}}};
    return;
  }
  const bool with_alpha = compression == kAlphaMasks || header_bytes >= 56;
  const size_t count = with_alpha ? 4 : 3;
  const size_t at = kFileHeader + 40;
  if (bytes.size() < at + 4 * count) {
    fail("truncated in its header", name);
  }
  for (size_t i = 0; i < count; ++i) {
    header.fields[i].mask = le32(bytes, at + 4 * i);
    if (!is_one_run(header.fields[i].mask) && (i < 3 || header.fields[i].mask != 0)) {
      fail("damaged header: a channel's mask is not one run of bits", name);
    }
  }
}

void read_palette(Bytes bytes, size_t at, size_t entry_bytes, size_t count, BmpHeader& header) {
  header.gray = true;
  for (size_t i = 0; i < std::min<size_t>(count, 256) && at + entry_bytes <= bytes.size(); ++i) {
    auto& entry = header.palette[i];
    entry = {bytes[at + 2], bytes[at + 1], bytes[at]};
    header.gray = header.gray && entry[0] == entry[1] && entry[1] == entry[2];
    at += entry_bytes;
  }
}

BmpHeader read_header(Bytes bytes, std::string_view name) {
  if (bytes.size() < kFileHeader + kCoreHeader) {
    fail("truncated in its header", name);
  }
  BmpHeader header;
  header.pixels = le32(bytes, 10);
  const uint32_t length = le32(bytes, kFileHeader);
  uint32_t compression = kPlain;
  size_t colors = 0;
  if (length == kCoreHeader) {
    header.width = le16(bytes, kFileHeader + 4);
    header.height = le16(bytes, kFileHeader + 6);
    header.bits = le16(bytes, kFileHeader + 10);
  } else if (length >= 40 && length <= 1024 && bytes.size() >= kFileHeader + 40) {
    header.width = static_cast<int32_t>(le32(bytes, kFileHeader + 4));
    header.height = static_cast<int32_t>(le32(bytes, kFileHeader + 8));
    header.bits = le16(bytes, kFileHeader + 14);
    compression = le32(bytes, kFileHeader + 16);
    colors = le32(bytes, kFileHeader + 32);
    header.from_top = header.height < 0;
    header.height = std::abs(header.height);
  } else {
    fail(fmt::format("damaged or truncated: a header of {} bytes", length), name);
  }
  const uint32_t bits = header.bits;
  if (bits != 1 && bits != 2 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32) {
    fail(fmt::format("damaged header: {} bits per pixel", bits), name);
  }
  const bool masks =
      (compression == kMasks || compression == kAlphaMasks) && (bits == 16 || bits == 32);
  if (compression != kPlain && !masks) {
    fail(fmt::format("unsupported compression {}: expected none. Convert it to PNG", compression),
         name);
  }
  if (bits == 16 || bits == 32) {
    read_fields(bytes, compression, length, header, name);
  } else if (bits <= 8) {
    const size_t most = size_t{1} << bits;
    const size_t count = colors == 0 ? most : std::min(colors, most);
    read_palette(bytes, kFileHeader + length, length == kCoreHeader ? 3 : 4, count, header);
  }
  return header;
}

void read_pixel(const BmpHeader& header,
                const uint8_t* row,
                size_t x,
                std::array<uint8_t, 4>& pixel) {
  pixel[3] = 255;
  if (header.has_palette()) {
    const size_t bit = x * header.bits;
    const size_t index =
        row[bit / 8] >> (8 - header.bits - bit % 8) & ((size_t{1} << header.bits) - 1);
    std::copy_n(header.palette[index].begin(), 3, pixel.begin());
  } else if (header.bits == 24) {
    pixel[0] = row[3 * x + 2];
    pixel[1] = row[3 * x + 1];
    pixel[2] = row[3 * x];
  } else {
    const size_t bytes = header.bits / 8;
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; ++i) {
      value |= uint32_t{row[bytes * x + i]} << (8 * i);
    }
    for (size_t c = 0; c < (header.has_alpha() ? 4U : 3U); ++c) {
      pixel[c] = header.fields[c].of(value);
    }
  }
}

}  // namespace

Image decode_bmp(Bytes bytes, const DecodeOptions& options) {
  const BmpHeader header = read_header(bytes, options.name);
  const Size size =
      checked_size(header.height, header.width, options.most_pixels, "image.bmp", options.name);
  const size_t left = bytes.size() - std::min(bytes.size(), header.pixels);
  const auto rows = static_cast<int>(
      std::min<int64_t>(size.height, static_cast<int64_t>(left / header.row_bytes())));
  if (rows < size.height && options.damaged != Damaged::kAccept) {
    fail("truncated; " + rows_that_came(rows, size.height), options.name);
  }
  const bool gray = header.has_palette() && header.gray;
  const bool alpha = header.has_alpha() && options.mode == Mode::kAsItIs;
  Image image = new_image(size, gray ? Order::kGray : alpha ? Order::kRgba : Order::kRgb, options);
  const auto channels = static_cast<size_t>(image.channels());
  std::array<uint8_t, 4> pixel{};
  for (int i = 0; i < rows; ++i) {
    const uint8_t* const from =
        bytes.data() + header.pixels + static_cast<size_t>(i) * header.row_bytes();
    uint8_t* to = image.row<uint8_t>(header.from_top ? i : size.height - 1 - i);
    for (size_t x = 0; x < static_cast<size_t>(size.width); ++x, to += channels) {
      read_pixel(header, from, x, pixel);
      std::copy_n(pixel.begin(), channels, to);
    }
  }
  return to_mode(std::move(image), options.mode);
}

ImageInfo probe_bmp(Bytes bytes, std::string_view name) {
  const BmpHeader header = read_header(bytes, name);
  const Size size =
      checked_size(header.height, header.width, Image::kMostPixels, "image.bmp", name);
  const bool wide = header.bits >= 16;
  const int channels = !wide ? 1 : header.has_alpha() ? 4 : 3;
  return {Format::kBmp, size, channels, header.bits < 8 ? static_cast<int>(header.bits) : 8};
}

}  // namespace argosy::image::codecs
