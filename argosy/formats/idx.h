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

/// An array from an IDX file: row-major, with elements in this machine's byte order.
struct IdxArray {
  IdxType type = IdxType::kU8;
  std::vector<int64_t> dims;   ///< 1 to 255 of them; a dimension may be 0
  std::vector<uint8_t> bytes;  ///< product of dims × element_bytes(type)
};

struct IdxOptions {
  /// Most bytes of elements. It stops a gzip bomb. MNIST has 47 MB.
  int64_t most_bytes = int64_t{4} << 30;
};

/// Reads an IDX file (MNIST's format). Its first bytes say if it is plain or gzip.
///
///     IdxArray images = read_idx("train-images-idx3-ubyte.gz");  // dims {60000, 28, 28}
///
/// Errors: DataError with path and byte offset in the unpacked data: the magic number is wrong, the
/// type is unknown, the file cannot hold the dimensions, they exceed the limit, the file is
/// truncated or has trailing bytes. Also FileReader's errors. UsageError for a limit below 0.
/// Cost: memory grows with the data that came; a length field alone allocates nothing.
/// Source: the format's description on Y. LeCun's MNIST page; gzip is RFC 1952.
[[nodiscard]] IdxArray read_idx(const std::string& path, const IdxOptions& options = {});

}  // namespace argosy::formats
