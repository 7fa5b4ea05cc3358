#pragma once

#include <cstddef>

#include "argosy/base/exact_sum.h"
#include "argosy/base/simd.h"

namespace argosy::optim::kernels {

/// Norms have the same bits however a parameter is cut: the squares of a block of this many
/// elements, counted from the parameter's first, are added in one fixed order, and the sums of
/// blocks without rounding. A part of a parameter begins at a whole block.
inline constexpr std::size_t kSquaresBlock = 256;

/// The sums of squares that a rule needs of a whole parameter.
struct Sums {
  double param = 0;   ///< of the parameter
  double update = 0;  ///< of what the rule compares it with
};

/// The same of a part of it.
struct ExactSums {
  ExactSum param{};
  ExactSum update{};

  void add(const ExactSums& other) {
    param.add(other.param);
    update.add(other.update);
  }
  [[nodiscard]] Sums value() const { return {param.value(), update.value()}; }
};

/// Adds the second half of some numbers to the first, until one remains. Vectorises, and any device
/// can do the same.
template <std::size_t kNumbers = kSquaresBlock>
ARGOSY_KERNEL_INLINE double fold(double* numbers) {
  if constexpr (kNumbers > 1) {
    for (std::size_t i = 0; i < kNumbers / 2; ++i) {
      numbers[i] += numbers[i + kNumbers / 2];
    }
    return fold<kNumbers / 2>(numbers);
  } else {
    return numbers[0];
  }
}

/// Calls body(i, square of the parameter's element, square of the other) for every i, and adds what
/// it has set.
template <typename Body>
ARGOSY_KERNEL_INLINE ExactSums sum_squares(std::size_t count, const Body& body) {
  ExactSums sums;
  const std::size_t whole = count / kSquaresBlock * kSquaresBlock;
  for (std::size_t begin = 0; begin < whole; begin += kSquaresBlock) {
    double param[kSquaresBlock], update[kSquaresBlock];
    for (std::size_t i = 0; i < kSquaresBlock; ++i) {
      body(begin + i, param[i], update[i]);
    }
    sums.param.add(fold(param));
    sums.update.add(fold(update));
  }
  if (whole < count) {
    double param[kSquaresBlock] = {}, update[kSquaresBlock] = {};
    for (std::size_t i = whole; i < count; ++i) {
      body(i, param[i - whole], update[i - whole]);
    }
    sums.param.add(fold(param));
    sums.update.add(fold(update));
  }
  return sums;
}

}  // namespace argosy::optim::kernels
