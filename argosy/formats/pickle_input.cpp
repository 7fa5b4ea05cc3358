#include "argosy/formats/pickle_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "argosy/formats/pickle_problem.h"

namespace argosy::formats {

std::span<const uint8_t> PickleInput::take(uint64_t size) {
  if (size > left()) {
    throw PickleProblem{
        fmt::format("truncated or damaged: {} more bytes are promised, {} are left", size, left())};
  }
  at_ += size;
  return bytes_.subspan(at_ - size, size);
}

uint64_t PickleInput::little_endian(size_t width) {
  uint64_t value = 0;
  std::memcpy(&value, take(width).data(), width);
  return value;
}

std::string_view PickleInput::text(size_t width_of_length) {
  const std::span<const uint8_t> content = take(little_endian(width_of_length));
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

int64_t PickleInput::long_int(size_t width_of_length) {
  constexpr size_t kWidth = sizeof(int64_t);
  const std::span<const uint8_t> digits = take(little_endian(width_of_length));
  const uint8_t sign = !digits.empty() && (digits.back() & 0x80) != 0 ? 0xff : 0;
  auto value = static_cast<int64_t>(sign == 0 ? 0 : -1);
  std::memcpy(&value, digits.data(), std::min(digits.size(), kWidth));
  const auto beyond = digits.size() > kWidth ? digits.subspan(kWidth) : std::span<const uint8_t>();
  const bool fits = std::ranges::all_of(beyond, [&](uint8_t byte) { return byte == sign; }) &&
                    (beyond.empty() || (value < 0) == (sign != 0));
  if (!fits) {
    throw PickleProblem{fmt::format("an int of {} bytes: more than 64 bits", digits.size())};
  }
  return value;
}

double PickleInput::big_endian_double() {
  uint64_t bits = 0;
  std::memcpy(&bits, take(sizeof(bits)).data(), sizeof(bits));
  return std::bit_cast<double>(__builtin_bswap64(bits));
}

std::string_view PickleInput::line() {
  const std::string_view rest(reinterpret_cast<const char*>(bytes_.data() + at_), left());
  const size_t size = rest.find('\n');
  if (size == std::string_view::npos) {
    throw PickleProblem{"truncated or damaged: a line does not end"};
  }
  at_ += size + 1;
  return rest.substr(0, size);
}

}  // namespace argosy::formats
