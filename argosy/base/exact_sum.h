#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace argosy {

/// A sum of doubles without rounding. So neither the order of the numbers nor who added which of
/// them changes a bit of it.
///
///     ExactSum sum;
///     sum.add(1e30);
///     sum.add(1.0);
///     sum.add(-1e30);
///     sum.value();                   // 1.0
///
/// The parts of several processes are added number by number: sum up numbers() over them, which
/// ExactSum::from() takes. There is room for 2^31 processes.
/// Cost: about 5 ns for each double, 576 bytes.
/// Source: U. Kulisch, "Computer Arithmetic and Validity", 2008: the long accumulator.
class ExactSum final {
 public:
  /// Digits of 32 bits from the smallest double to the largest, two for the carry; then how many
  /// +inf, -inf and NaN there were.
  static constexpr std::size_t kDigits = 68;
  static constexpr std::size_t kNumbers = kDigits + 3;

  ExactSum() = default;

  void add(double value);
  void add(const ExactSum& other);

  /// Returns the sum, rounded once to the nearest double; NaN for a NaN and for +inf beside -inf.
  [[nodiscard]] double value() const;

  /// Returns a form whose sum over many is from()'s for the sum of all.
  [[nodiscard]] std::array<int64_t, kNumbers> numbers() const;
  [[nodiscard]] static ExactSum from(std::span<const int64_t, kNumbers> numbers);

 private:
  // The number is the sum of digits_[i] * 2^(32 i - 1074). A digit may be negative, or larger than
  // 32 bits; carries move when somebody looks.
  std::array<int64_t, kNumbers> digits_{};
  int64_t adds_ = 0;  // since the last carry
};

}  // namespace argosy
