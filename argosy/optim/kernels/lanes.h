#pragma once

#include <cstddef>

#include "argosy/base/simd.h"

namespace argosy::optim::kernels {

/// Partial sums of a loop over elements: in lanes they vectorise without -ffast-math, and their
/// order is the same on every machine.
inline constexpr std::size_t kLanes = 16;

/// The sums of squares that a rule needs of a whole parameter, added up in double.
struct Sums {
  double param = 0;   ///< of the parameter
  double update = 0;  ///< of what the rule compares it with

  void add(const Sums& other) {
    param += other.param;
    update += other.update;
  }
};

/// Calls body(i, lane, sums_of_that_lane) for every i, and adds the lanes up.
template <typename Body>
ARGOSY_KERNEL_INLINE Sums sum_in_lanes(std::size_t count, const Body& body) {
  double param[kLanes] = {}, update[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      body(i + lane, param[lane], update[lane]);
    }
  }
  for (std::size_t lane = 0; i < count; ++i, ++lane) {
    body(i, param[lane], update[lane]);
  }
  Sums total;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    total.add({param[lane], update[lane]});
  }
  return total;
}

}  // namespace argosy::optim::kernels
