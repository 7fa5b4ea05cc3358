#include "argosy/formats/idx.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/formats/file_reader.h"

namespace argosy::formats {
namespace {

[[noreturn]] void fail(const FileReader& reader, int64_t offset, const std::string& what) {
  throw DataError("formats.idx",
                  reader.compressed() ? what + ", in the unpacked data" : what,
                  {reader.path(), offset});
}

std::optional<IdxType> to_type(uint8_t code) {
  for (const IdxType type :
       {IdxType::kU8, IdxType::kI8, IdxType::kI16, IdxType::kI32, IdxType::kF32, IdxType::kF64}) {
    if (static_cast<uint8_t>(type) == code) {
      return type;
    }
  }
  return std::nullopt;
}

void read_header(FileReader& reader, IdxArray& array) {
  std::array<uint8_t, 4> magic{};
  const size_t got = reader.read(magic);
  if (got < magic.size()) {
    fail(reader,
         static_cast<int64_t>(got),
         fmt::format("truncated: expected a header, got {} bytes", got));
  }
  const std::optional<IdxType> type = to_type(magic[2]);
  if (magic[0] != 0 || magic[1] != 0 || !type || magic[3] == 0) {
    fail(reader,
         0,
         fmt::format("wrong magic number: expected 00 00 <08|09|0b|0c|0d|0e> <01-ff>, got "
                     "{:02x} {:02x} {:02x} {:02x}: not an IDX file",
                     magic[0],
                     magic[1],
                     magic[2],
                     magic[3]));
  }
  array.type = *type;
  for (int i = 0; i < magic[3]; ++i) {
    std::array<uint8_t, 4> size{};
    if (reader.read(size) < size.size()) {
      fail(reader,
           reader.position(),
           fmt::format(
               "truncated: expected {} dimensions, the file ends in dimension {}", magic[3], i));
    }
    array.dims.push_back(int64_t{size[0]} << 24 | int64_t{size[1]} << 16 | int64_t{size[2]} << 8 |
                         int64_t{size[3]});
  }
}

/// Bytes that the header promises, checked against what the file can hold at most and the limit.
size_t payload_bytes(const FileReader& reader, const IdxArray& array, int64_t most_bytes) {
  int64_t bytes = element_bytes(array.type);
  bool too_large = false;
  const bool empty = std::find(array.dims.begin(), array.dims.end(), 0) != array.dims.end();
  for (const int64_t dim : array.dims) {
    too_large = too_large || __builtin_mul_overflow(bytes, dim, &bytes);
  }
  if (empty) {
    return 0;
  }
  if (too_large || bytes > reader.most_bytes() - reader.position()) {
    fail(reader,
         4,
         fmt::format("truncated or damaged: dimensions {} of {}-byte elements need more bytes than "
                     "the file has",
                     fmt::join(array.dims, " x "),
                     element_bytes(array.type)));
  }
  if (bytes > most_bytes) {
    fail(reader,
         4,
         fmt::format("dimensions {} are {} bytes of elements, more than {}. If it is sound, raise "
                     "IdxOptions::most_bytes",
                     fmt::join(array.dims, " x "),
                     bytes,
                     most_bytes));
  }
  return static_cast<size_t>(bytes);
}

void read_payload(FileReader& reader, size_t expected, std::vector<uint8_t>& bytes) {
  constexpr size_t kFirst = 4U << 20;
  while (bytes.size() < expected) {
    const size_t have = bytes.size();
    bytes.resize(std::min(expected, std::max(kFirst, have * 2)));
    const size_t got = reader.read(std::span(bytes).subspan(have));
    if (got < bytes.size() - have) {
      fail(reader,
           reader.position(),
           fmt::format("truncated: expected {} bytes of elements, got {}", expected, have + got));
    }
  }
  std::array<uint8_t, 1> more{};
  if (reader.read(more) > 0) {  // also verifies the last gzip checksum
    fail(reader,
         reader.position() - 1,
         fmt::format("trailing bytes: the header promises {} bytes of elements, more follow",
                     expected));
  }
}

void to_host_order(std::vector<uint8_t>& bytes, size_t width) {
  if (std::endian::native == std::endian::big || width == 1) {
    return;
  }
  for (size_t i = 0; i < bytes.size(); i += width) {
    std::reverse(bytes.begin() + i, bytes.begin() + i + width);
  }
}

}  // namespace

int64_t element_bytes(IdxType type) {
  switch (type) {
    case IdxType::kU8:
    case IdxType::kI8:
      return 1;
    case IdxType::kI16:
      return 2;
    case IdxType::kI32:
    case IdxType::kF32:
      return 4;
    case IdxType::kF64:
      return 8;
  }
  return 1;
}

IdxArray read_idx(const std::string& path, const IdxOptions& options) {
  ARGOSY_CHECK(
      options.most_bytes >= 0, "formats.idx", "IdxOptions::most_bytes must not be negative");
  FileReader reader(path);
  IdxArray array;
  read_header(reader, array);
  read_payload(reader, payload_bytes(reader, array, options.most_bytes), array.bytes);
  to_host_order(array.bytes, static_cast<size_t>(element_bytes(array.type)));
  return array;
}

}  // namespace argosy::formats
