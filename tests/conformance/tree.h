#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

// The tree of sums from its definition, written without a look at the code under test.
namespace argosy::conformance {

/// T(1 leaf) = the leaf. T(n leaves) = T(first m) + T(rest), m the largest power of two below n.
template <typename Value, typename Leaf, typename Add>
Value tree_of(size_t first, size_t leaves, const Leaf& leaf, const Add& add) {
  if (leaves == 1) {
    return leaf(first);
  }
  size_t half = 1;
  while (half * 2 < leaves) {
    half *= 2;
  }
  const Value left = tree_of<Value>(first, half, leaf, add);
  const Value right = tree_of<Value>(first + half, leaves - half, leaf, add);
  return add(left, right);
}

/// Element i of leaf `leaf`: numbers of very different size, for which nearly every other order of
/// the sum gives other bits; and the odd ones: -0.0 in all leaves, NaN, infinity, denormals.
inline float leaf_value(size_t leaf, int64_t i) {
  if (i % 37 == 5) {
    return -0.0F;
  }
  if (i % 41 == 7 && leaf % 5 == 2) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  if (i % 43 == 11 && leaf % 3 == 1) {
    return i % 2 == 0 ? HUGE_VALF : -HUGE_VALF;
  }
  auto mixed = (static_cast<uint64_t>(i) + 1) * 0x9E3779B97F4A7C15U + leaf * 0xD1B54A32D192ED03U;
  mixed ^= mixed >> 29U;
  const float digits =
      static_cast<float>((mixed >> 8U) & 0xFFFFFFU) * (mixed % 2 == 0 ? 1.0F : -1.0F);
  const int exponent = static_cast<int>((mixed >> 40U) % 24U);
  return std::ldexp(digits, i % 29 == 3 ? -165 + exponent / 4 : exponent - 36);
}

}  // namespace argosy::conformance
