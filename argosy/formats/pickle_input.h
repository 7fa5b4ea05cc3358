#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace argosy::formats {

/// The bytes of a pickle, taken from the front to the back. Spans and texts point into them.
/// Errors: PickleProblem when fewer bytes are left than a call needs.
class PickleInput final {
 public:
  explicit PickleInput(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  /// Returns the position of the next byte.
  [[nodiscard]] size_t at() const { return at_; }
  [[nodiscard]] size_t left() const { return bytes_.size() - at_; }

  [[nodiscard]] std::span<const uint8_t> take(uint64_t size);
  /// Takes a number of `width` bytes, at most 8.
  [[nodiscard]] uint64_t little_endian(size_t width);
  /// Takes a length of `width_of_length` bytes, and then as many bytes.
  [[nodiscard]] std::string_view text(size_t width_of_length);
  /// Takes a length in bytes, and then an int in two's complement. Errors: the int needs more than
  /// 64 bits.
  [[nodiscard]] int64_t long_int(size_t width_of_length);
  /// Takes a double with its highest byte first.
  [[nodiscard]] double big_endian_double();
  /// Takes the bytes up to the next line feed, and drops the line feed.
  [[nodiscard]] std::string_view line();

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

}  // namespace argosy::formats
