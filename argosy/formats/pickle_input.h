#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace argosy::formats {

/// The bytes of a pickle, taken from the front to the back. Spans and texts point into them.
/// Errors: PickleProblem where fewer bytes are left than are asked for.
class PickleInput final {
 public:
  explicit PickleInput(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  /// Where the next byte stands.
  [[nodiscard]] size_t at() const { return at_; }
  [[nodiscard]] size_t left() const { return bytes_.size() - at_; }

  [[nodiscard]] std::span<const uint8_t> take(uint64_t size);
  /// A number of `width` bytes, at most 8.
  [[nodiscard]] uint64_t little_endian(size_t width);
  /// A length of `width` bytes, and as many bytes.
  [[nodiscard]] std::string_view text(size_t width_of_length);
  /// An int in two's complement behind its length in bytes. Errors: it needs more than 64 bits.
  [[nodiscard]] int64_t long_int(size_t width_of_length);
  /// A double, its highest byte first.
  [[nodiscard]] double big_endian_double();
  /// Up to the next line feed, without it.
  [[nodiscard]] std::string_view line();

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

}  // namespace argosy::formats
