// Numbers and text: the operations that push a value without values below it, and the reading of
// the stream itself.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "argosy/formats/pickle_ops.h"
#include "argosy/formats/pickle_text.h"
#include "argosy/formats/unpickler.h"

namespace argosy::formats {

bool Unpickler::number(uint8_t op) {
  switch (op) {
    case kOpNone:
      push({});
      return true;
    case kOpNewTrue:
      push(true);
      return true;
    case kOpNewFalse:
      push(false);
      return true;
    case kOpBinInt1:
      push(little_endian(1));
      return true;
    case kOpBinInt2:
      push(little_endian(2));
      return true;
    case kOpBinInt:
      push(static_cast<int32_t>(little_endian(4)));
      return true;
    case kOpLong1:
      push_long(take(little_endian(1)));
      return true;
    case kOpLong4:
      push_long(take(little_endian(4)));
      return true;
    case kOpBinFloat: {
      std::array<uint8_t, 8> digits{};
      const std::span<const uint8_t> bits = take(digits.size());
      std::reverse_copy(bits.begin(), bits.end(), digits.begin());
      push(std::bit_cast<double>(digits));
      return true;
    }
    default:
      return false;
  }
}

bool Unpickler::text(uint8_t op) {
  switch (op) {
    case kOpBinUnicode:
      push_text(PickleKind::kString, take_text(4));
      return true;
    case kOpShortBinUnicode:
      push_text(PickleKind::kString, take_text(1));
      return true;
    case kOpBinUnicode8:
      push_text(PickleKind::kString, take_text(8));
      return true;
    case kOpBinString:
    case kOpBinBytes:
      push_text(PickleKind::kBytes, take_text(4));
      return true;
    case kOpShortBinString:
    case kOpShortBinBytes:
      push_text(PickleKind::kBytes, take_text(1));
      return true;
    case kOpBinBytes8:
      push_text(PickleKind::kBytes, take_text(8));
      return true;
    case kOpByteArray8:
      push_text(PickleKind::kByteArray, take_text(8));
      return true;
    default:
      return false;
  }
}

std::span<const uint8_t> Unpickler::take(uint64_t size) {
  if (size > bytes_.size() - at_) {
    fail(fmt::format("truncated or damaged: {} more bytes are promised, {} are left",
                     size,
                     bytes_.size() - at_));
  }
  at_ += size;
  return bytes_.subspan(at_ - size, size);
}

uint64_t Unpickler::little_endian(size_t width) {
  uint64_t value = 0;
  const std::span<const uint8_t> digits = take(width);
  for (size_t i = 0; i < width; ++i) {
    value |= uint64_t{digits[i]} << (8 * i);
  }
  return value;
}

std::string_view Unpickler::take_text(size_t width_of_length) {
  const std::span<const uint8_t> content = take(little_endian(width_of_length));
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

std::string_view Unpickler::line() {
  const auto rest = bytes_.subspan(at_);
  const auto* end = static_cast<const uint8_t*>(
      rest.empty() ? nullptr : std::memchr(rest.data(), '\n', rest.size()));
  if (end == nullptr) {
    fail("truncated or damaged: a line does not end");
  }
  const auto size = static_cast<size_t>(end - rest.data());
  at_ += size + 1;
  return {reinterpret_cast<const char*>(rest.data()), size};
}

/// Two's complement, little-endian, of any length.
void Unpickler::push_long(std::span<const uint8_t> digits) {
  constexpr size_t kWidth = sizeof(int64_t);
  const uint8_t sign = !digits.empty() && (digits.back() & 0x80) != 0 ? 0xff : 0;
  uint64_t value = 0;
  for (size_t i = 0; i < kWidth; ++i) {
    value |= uint64_t{i < digits.size() ? digits[i] : sign} << (8 * i);
  }
  const auto beyond = digits.size() > kWidth ? digits.subspan(kWidth) : std::span<const uint8_t>();
  const bool fits =
      std::all_of(beyond.begin(), beyond.end(), [&](uint8_t byte) { return byte == sign; }) &&
      (beyond.empty() || (value >> 63 != 0) == (sign != 0));
  if (!fits) {
    fail(fmt::format("an int of {} bytes: more than 64 bits", digits.size()));
  }
  push(static_cast<int64_t>(value));
}

void Unpickler::push_text(PickleKind kind, std::string_view text) {
  if (kind == PickleKind::kString && !is_utf8(text)) {
    fail("damaged text: a str that is not UTF-8");
  }
  charge(kNodeCost + text.size());
  std::string content(text);
  if (kind == PickleKind::kString) {
    push(std::move(content));
  } else {
    push(kind == PickleKind::kBytes ? PickleValue::bytes(std::move(content))
                                    : PickleValue::byte_array(std::move(content)));
  }
}

}  // namespace argosy::formats
