#include "argosy/formats/mat.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/formats/file_reader.h"
#include "argosy/formats/mat_elements.h"

namespace argosy::formats {
namespace {

constexpr size_t kMatHeaderBytes = 128;
constexpr size_t kVersionAt = 124;
constexpr size_t kMatTag = 8;
constexpr int64_t kMatPiece = int64_t{256} * 1024;
constexpr double kMostExact = 9007199254740992.0;  // 2^53

// Flags and classes of an array, in the first word of its flags.
constexpr uint32_t kComplex = 0x0800;
constexpr uint32_t kFirstNumeric = 6;  // double; then single, and i8 to u64
constexpr uint32_t kLastNumeric = 15;

std::string too_large(int64_t most) {
  return fmt::format("more than {} bytes. If that is right, raise MatOptions::most_bytes", most);
}

std::vector<uint8_t> read_file(const std::string& path, int64_t most) {
  FileReader reader(path);
  std::vector<uint8_t> bytes;
  while (true) {
    const size_t have = bytes.size();
    if (have == bytes.capacity()) {
      const int64_t guess = std::min(std::max(reader.expected_bytes(), kMatPiece), most);
      bytes.reserve(std::max(static_cast<size_t>(guess) + 1, have + have / 2));
    }
    bytes.resize(std::min(bytes.capacity(), have + kMatPiece));
    const size_t got = reader.read(std::span(bytes).subspan(have));
    bytes.resize(have + got);
    if (got == 0) {
      return bytes;
    }
    if (reader.position() > most) {
      throw DataError("formats.mat", too_large(most), {path});
    }
  }
}

/// Checks the header; true where the file's byte order is not this machine's.
bool read_header(const std::string& path, std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("MATLAB 7.3") || text.starts_with("\x89HDF")) {
    throw DataError(
        "formats.mat", "a MATLAB 7.3 file (HDF5), which is not read. Save it with -v7", {path, 0});
  }
  constexpr uint16_t kMark = 'M' << 8 | 'I';
  constexpr uint16_t kVersion = 0x0100;
  if (bytes.size() >= kMatHeaderBytes) {
    for (const bool swapped : {false, true}) {
      const MatSource source{.path = path, .swapped = swapped};
      if (mat_number<uint16_t>(source, bytes.data() + kVersionAt + 2) == kMark &&
          mat_number<uint16_t>(source, bytes.data() + kVersionAt) == kVersion) {
        return swapped;
      }
    }
  }
  throw DataError("formats.mat",
                  "not a MATLAB 5 file: expected a header of 128 bytes that ends in version 1 and "
                  "\"IM\" or \"MI\" (a file of MATLAB 4 has none: save it anew)",
                  {path, 0});
}

std::vector<uint8_t> inflate_all(const MatSource& source, const MatElement& element, int64_t most) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) {
    source.fail(element.at, "zlib could not start");
  }
  constexpr size_t kLargestRatio = 1032;  // of deflate
  const size_t piece = std::clamp<size_t>(8 * element.data.size(), 1024, kMatPiece);
  std::vector<uint8_t> bytes;
  stream.next_in = const_cast<Bytef*>(element.data.data());
  stream.avail_in = static_cast<uInt>(element.data.size());
  int code = Z_OK;
  while (code == Z_OK && static_cast<int64_t>(bytes.size()) <= most) {
    const size_t have = bytes.size();
    bytes.resize(have + piece);
    stream.next_out = bytes.data() + have;
    stream.avail_out = static_cast<uInt>(piece);
    code = inflate(&stream, Z_NO_FLUSH);
    bytes.resize(bytes.size() - stream.avail_out);
    if (have == 0 && bytes.size() > kMatTag) {
      // The variable's own tag says how long it is; a length that cannot be true reserves nothing.
      const size_t all = mat_number<uint32_t>(source, bytes.data() + 4) + kMatTag;
      if (all <= kLargestRatio * element.data.size() && static_cast<int64_t>(all) <= most) {
        bytes.reserve(all + piece);
      }
    }
  }
  const std::string reason = code == Z_BUF_ERROR     ? "it is cut short"
                             : stream.msg != nullptr ? stream.msg
                                                     : zError(code);
  inflateEnd(&stream);
  if (static_cast<int64_t>(bytes.size()) > most) {
    source.fail(element.at, too_large(most));
  }
  if (code != Z_STREAM_END || stream.avail_in != 0) {
    source.fail(element.at,
                fmt::format("a compressed variable cannot be unpacked: {}",
                            code == Z_STREAM_END ? "bytes follow it" : reason));
  }
  return bytes;
}

template <typename Number>
std::vector<Number> numbers_of(const MatSource& source, const MatElement& element) {
  std::vector<Number> numbers(element.data.size() / sizeof(Number));
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = mat_number<Number>(source, element.data.data() + i * sizeof(Number));
  }
  return numbers;
}

size_t bytes_of(MatType type) {
  switch (type) {
    case MatType::kI8:
    case MatType::kU8:
      return 1;
    case MatType::kI16:
    case MatType::kU16:
      return 2;
    case MatType::kI32:
    case MatType::kU32:
    case MatType::kF32:
      return 4;
    case MatType::kI64:
    case MatType::kU64:
    case MatType::kF64:
      return 8;
    default:
      return 0;
  }
}

decltype(MatArray::values) values_of(const MatSource& source, const MatElement& element) {
  switch (element.type) {
    case MatType::kI8:
      return numbers_of<int8_t>(source, element);
    case MatType::kU8:
      return numbers_of<uint8_t>(source, element);
    case MatType::kI16:
      return numbers_of<int16_t>(source, element);
    case MatType::kU16:
      return numbers_of<uint16_t>(source, element);
    case MatType::kI32:
      return numbers_of<int32_t>(source, element);
    case MatType::kU32:
      return numbers_of<uint32_t>(source, element);
    case MatType::kI64:
      return numbers_of<int64_t>(source, element);
    case MatType::kU64:
      return numbers_of<uint64_t>(source, element);
    case MatType::kF32:
      return numbers_of<float>(source, element);
    case MatType::kF64:
      return numbers_of<double>(source, element);
    default:
      source.fail(
          element.at,
          fmt::format("numbers of the unknown type {}", static_cast<uint32_t>(element.type)));
  }
}

std::vector<int64_t> read_dims(const MatSource& source, const MatElement& element) {
  if (element.type != MatType::kI32 || element.data.size() % 4 != 0 || element.data.size() < 8) {
    source.fail(element.at, "damaged: expected two or more dimensions of 32 bits");
  }
  const auto stored = numbers_of<int32_t>(source, element);
  std::vector<int64_t> dims(stored.begin(), stored.end());
  if (std::any_of(dims.begin(), dims.end(), [](int64_t dim) { return dim < 0; })) {
    source.fail(element.at, fmt::format("damaged: dimensions {}", fmt::join(dims, " x ")));
  }
  return dims;
}

/// nullopt where the product does not fit.
std::optional<int64_t> product(const std::vector<int64_t>& dims) {
  int64_t all = 1;
  bool fits = true;
  for (const int64_t dim : dims) {
    fits = fits && !__builtin_mul_overflow(all, dim, &all);
  }
  return fits ? std::optional(all) : std::nullopt;
}

std::string kind_of(uint32_t array_class, bool complex) {
  switch (array_class) {
    case 1:
      return "cell array";
    case 2:
      return "struct";
    case 3:
      return "object";
    case 4:
      return "text";
    case 5:
      return "sparse array";
    default:
      return complex ? "array of complex numbers"
                     : fmt::format("variable of class {}", array_class);
  }
}

void read_variable(const MatSource& source, const MatElement& matrix, MatFile& file) {
  if (matrix.type != MatType::kMatrix) {
    source.fail(matrix.at,
                fmt::format("expected a variable (type 14), got an element of type {}",
                            static_cast<uint32_t>(matrix.type)));
  }
  // Offsets in messages count from the same place as the matrix's own.
  const std::span all(matrix.data.data() - matrix.begin, matrix.begin + matrix.data.size());
  MatElements parts(source, all, matrix.begin);
  const MatElement flags = parts.next("an array's flags");
  if (flags.type != MatType::kU32 || flags.data.size() != 8) {
    source.fail(flags.at, "damaged: expected an array's flags, two words of 32 bits");
  }
  const auto word = mat_number<uint32_t>(source, flags.data.data());
  const uint32_t array_class = word & 0xff;
  const bool complex = (word & kComplex) != 0;
  std::vector<int64_t> dims = read_dims(source, parts.next("an array's dimensions"));
  const MatElement name_part = parts.next("an array's name");
  if (name_part.type != MatType::kI8) {
    source.fail(name_part.at, "damaged: expected an array's name");
  }
  const std::string name(name_part.data.begin(), name_part.data.end());
  if (array_class < kFirstNumeric || array_class > kLastNumeric || complex) {
    file.others.push_back({name, kind_of(array_class, complex)});
    return;
  }
  const MatElement numbers = parts.next("an array's numbers");
  const size_t width = bytes_of(numbers.type);
  const std::optional<int64_t> count = product(dims);
  if (width == 0 || numbers.data.size() % width != 0 || !count ||
      static_cast<size_t>(*count) != numbers.data.size() / width) {
    source.fail(numbers.at,
                fmt::format("damaged: {} bytes of type {} for {} numbers (\"{}\")",
                            numbers.data.size(),
                            static_cast<uint32_t>(numbers.type),
                            fmt::join(dims, " x "),
                            name));
  }
  if (!parts.done()) {
    source.fail(numbers.at, fmt::format("damaged: \"{}\" continues after its numbers", name));
  }
  file.arrays.push_back({file.path, name, std::move(dims), values_of(source, numbers)});
}

void check_names(const MatFile& file) {
  std::vector<std::string_view> names;
  for (const MatArray& array : file.arrays) {
    names.push_back(array.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    throw DataError("formats.mat", fmt::format("two variables \"{}\"", *twice), {file.path});
  }
}

}  // namespace

int64_t MatArray::size() const {
  return std::visit([](const auto& numbers) { return static_cast<int64_t>(numbers.size()); },
                    values);
}

std::vector<double> MatArray::doubles() const {
  return std::visit(
      [](const auto& numbers) { return std::vector<double>(numbers.begin(), numbers.end()); },
      values);
}

std::vector<int64_t> MatArray::integers() const {
  const auto whole = [&](auto number, size_t at) {
    bool fits = true;
    if constexpr (std::is_floating_point_v<decltype(number)>) {
      fits = std::abs(number) <= kMostExact && number == std::floor(number);
    } else {
      fits = std::in_range<int64_t>(number);
    }
    if (!fits) {
      throw DataError("formats.mat",
                      fmt::format("\"{}\": expected whole numbers, got {}", name, number),
                      {path, -1, static_cast<int64_t>(at)});
    }
    return static_cast<int64_t>(number);
  };
  return std::visit(
      [&](const auto& stored) {
        std::vector<int64_t> numbers;
        numbers.reserve(stored.size());
        for (const auto number : stored) {
          numbers.push_back(whole(number, numbers.size()));
        }
        return numbers;
      },
      values);
}

const MatArray& MatFile::at(std::string_view name) const {
  std::vector<std::string_view> names;
  for (const MatArray& array : arrays) {
    if (array.name == name) {
      return array;
    }
    names.push_back(array.name);
  }
  for (const Other& other : others) {
    if (other.name == name) {
      throw DataError(
          "formats.mat",
          fmt::format("\"{}\" is a {}: expected an array of real numbers", name, other.kind),
          {path});
    }
  }
  throw DataError(
      "formats.mat",
      fmt::format("no variable \"{}\": the arrays in it are {}", name, fmt::join(names, ", ")),
      {path});
}

MatArray MatFile::take(std::string_view name) {
  return std::move(arrays[static_cast<size_t>(&at(name) - arrays.data())]);
}

MatFile read_mat(const std::string& path, const MatOptions& options) {
  const std::vector<uint8_t> bytes = read_file(path, options.most_bytes);
  const MatSource source{.path = path, .swapped = read_header(path, bytes)};
  MatFile file{.path = path};
  int64_t left = options.most_bytes;
  for (MatElements variables(source, bytes, kMatHeaderBytes); !variables.done();) {
    const MatElement element = variables.next("a variable");
    if (element.type != MatType::kCompressed) {
      read_variable(source, element, file);
      continue;
    }
    const std::vector<uint8_t> unpacked = inflate_all(source, element, left);
    left -= static_cast<int64_t>(unpacked.size());
    const MatSource inside{path, source.swapped, static_cast<int64_t>(element.at)};
    MatElements variable(inside, unpacked);
    read_variable(inside, variable.next("a variable"), file);
    if (!variable.done()) {
      inside.fail(unpacked.size(), "damaged: a compressed variable continues after its end");
    }
  }
  check_names(file);
  return file;
}

}  // namespace argosy::formats
