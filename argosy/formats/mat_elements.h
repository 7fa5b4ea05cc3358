#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string>

namespace argosy::formats {

/// Types of data elements, by their codes in the file.
enum class MatType : uint32_t {
  kI8 = 1,
  kU8 = 2,
  kI16 = 3,
  kU16 = 4,
  kI32 = 5,
  kU32 = 6,
  kF32 = 7,
  kF64 = 9,
  kI64 = 12,
  kU64 = 13,
  kMatrix = 14,
  kCompressed = 15
};

/// The source of elements, for the byte order and for messages.
struct MatSource {
  const std::string& path;
  bool swapped = false;        ///< the file's byte order is not this machine's
  int64_t compressed_at = -1;  ///< offset of the compressed element that held the bytes; -1: none

  /// Throws a DataError about byte `at`.
  [[noreturn]] void fail(size_t at, const std::string& what) const;
};

struct MatElement {
  MatType type{};
  size_t at = 0;     ///< position of its tag
  size_t begin = 0;  ///< position of its data
  std::span<const uint8_t> data{};
};

/// Walks over consecutive data elements.
class MatElements final {
 public:
  /// `begin` is the position of the first one in `bytes`.
  MatElements(const MatSource& source, std::span<const uint8_t> bytes, size_t begin = 0)
      : source_(source), bytes_(bytes), at_(begin) {}

  [[nodiscard]] bool done() const { return at_ >= bytes_.size(); }
  /// Returns the next element, `what` in messages. Errors: DataError when it does not fit into the
  /// bytes.
  MatElement next(const char* what);

 private:
  const MatSource& source_;
  std::span<const uint8_t> bytes_;
  size_t at_;
};

/// Returns the number at the start of `bytes`, in the machine's byte order.
template <typename Number>
Number mat_number(const MatSource& source, const uint8_t* bytes) {
  std::array<uint8_t, sizeof(Number)> raw{};
  std::copy_n(bytes, sizeof(Number), raw.begin());
  if (source.swapped) {
    std::reverse(raw.begin(), raw.end());
  }
  return std::bit_cast<Number>(raw);
}

}  // namespace argosy::formats
