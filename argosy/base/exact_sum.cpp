#include "argosy/base/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace argosy {
namespace {

constexpr int kBits = 32;  // of a digit
constexpr int64_t kDigitMask = (int64_t{1} << kBits) - 1;
constexpr int kMantissaBits = 52;
constexpr int kLowest = -1074;  // the exponent of the smallest double
constexpr std::size_t kUp = ExactSum::kDigits, kDown = kUp + 1, kNan = kUp + 2;
// An add moves a digit by less than 2^32.
constexpr int64_t kAddsBeforeCarry = int64_t{1} << 30;

/// Moves what is beyond 32 bits to the next digit. The last one keeps the sign.
template <std::size_t kAll>
void carry(std::array<int64_t, kAll>& digits) {
  for (std::size_t i = 0; i + 1 < ExactSum::kDigits; ++i) {
    digits[i + 1] += digits[i] >> kBits;  // rounds down
    digits[i] &= kDigitMask;
  }
}

}  // namespace

void ExactSum::add(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto exponent = static_cast<int>((bits >> kMantissaBits) & 0x7ffU);
  uint64_t mantissa = bits & ((uint64_t{1} << kMantissaBits) - 1);
  const bool negative = bits >> 63U != 0;
  if (exponent == 0x7ff) {
    ++digits_[mantissa != 0 ? kNan : negative ? kDown : kUp];
    return;
  }
  if (exponent > 0) {
    mantissa |= uint64_t{1} << kMantissaBits;
  }
  const auto place = static_cast<unsigned>(exponent > 0 ? exponent - 1 : 0);
  const std::size_t first = place / kBits;
  const unsigned shift = place % kBits;
  const uint64_t low = mantissa << shift;
  const uint64_t high = shift == 0 ? 0 : mantissa >> (64U - shift);
  const int64_t sign = negative ? -1 : 1;
  digits_[first] += sign * static_cast<int64_t>(low & static_cast<uint64_t>(kDigitMask));
  digits_[first + 1] += sign * static_cast<int64_t>(low >> kBits);
  digits_[first + 2] += sign * static_cast<int64_t>(high);
  if (++adds_ == kAddsBeforeCarry) {
    carry(digits_);
    adds_ = 0;
  }
}

void ExactSum::add(const ExactSum& other) {
  const std::array<int64_t, kNumbers> theirs = other.numbers();
  carry(digits_);
  for (std::size_t i = 0; i < kNumbers; ++i) {
    digits_[i] += theirs[i];
  }
  adds_ = 1;
}

std::array<int64_t, ExactSum::kNumbers> ExactSum::numbers() const {
  std::array<int64_t, kNumbers> all = digits_;
  carry(all);
  return all;
}

ExactSum ExactSum::from(std::span<const int64_t, kNumbers> numbers) {
  ExactSum sum;
  std::ranges::copy(numbers, sum.digits_.begin());
  return sum;
}

double ExactSum::value() const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::array<int64_t, kNumbers> all = numbers();
  if (all[kNan] > 0 || (all[kUp] > 0 && all[kDown] > 0)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (all[kUp] > 0 || all[kDown] > 0) {
    return all[kUp] > 0 ? kInfinity : -kInfinity;
  }
  const bool negative = all[kDigits - 1] < 0;
  if (negative) {
    for (std::size_t i = 0; i < kDigits; ++i) {
      all[i] = -all[i];
    }
    carry(all);
  }
  std::size_t top = kDigits - 1;
  while (top > 0 && all[top] == 0) {
    --top;
  }
  // Three digits hold 65 significant bits and more. What lies below only says whether it is more
  // than nothing, which the lowest bit can say.
  const std::size_t low = top > 2 ? top - 2 : 0;
  __extension__ unsigned __int128 head = 0;
  for (std::size_t i = top + 1; i-- > low;) {
    head = (head << kBits) | static_cast<uint64_t>(all[i]);
  }
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(low);
  head |= std::any_of(all.begin(), end, [](int64_t digit) { return digit != 0; }) ? 1U : 0U;
  // A result below the normal range has all its bits in head, so ldexp does not round again.
  const double size =
      std::ldexp(static_cast<double>(head), static_cast<int>(low) * kBits + kLowest);
  return negative ? -size : size;
}

}  // namespace argosy
