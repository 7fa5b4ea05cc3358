#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace argosy::formats {

/// Element type of an IDX file; the value is the code in its header.
enum class IdxType : uint8_t {
  kU8 = 0x08,
  kI8 = 0x09,
  kI16 = 0x0b,
  kI32 = 0x0c,
  kF32 = 0x0d,
  kF64 = 0x0e
};

[[nodiscard]] int64_t element_bytes(IdxType type);

/// An array as an IDX file holds it: row-major, elements in this machine's byte order.
struct IdxArray {
  IdxType type = IdxType::kU8;
  std::vector<int64_t> dims;   ///< 1 to 255 of them; a dimension may be 0
  std::vector<uint8_t> bytes;  ///< product of dims × element_bytes(type)
};

struct IdxOptions {
  /// Most bytes of elements: what a gzip bomb runs into. MNIST has 47 MB.
  int64_t most_bytes = int64_t{4} << 30;
};

/// Reads an IDX file (MNIST's format), plain or gzip, whichever its first bytes say.
///
///     IdxArray images = read_idx("train-images-idx3-ubyte.gz");  // dims {60000, 28, 28}
///
/// Errors: DataError with path and byte offset (in the unpacked data): wrong magic number, unknown
/// type, dimensions that the file cannot hold or that are above the limit, truncated, trailing
/// bytes; and FileReader's. UsageError for a limit below 0.
/// Cost: nothing is allocated on the word of a length field; memory grows with the data that came.
/// Source: the format's description on Y. LeCun's MNIST page; gzip is RFC 1952.
[[nodiscard]] IdxArray read_idx(const std::string& path, const IdxOptions& options = {});

}  // namespace argosy::formats
