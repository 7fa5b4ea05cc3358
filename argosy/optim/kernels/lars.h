#pragma once

#include <cstddef>

#include "argosy/optim/kernels/gradient.h"
#include "argosy/optim/kernels/squares.h"

namespace argosy::optim::kernels {

/// One step's constants of Lars: b = momentum b + step_size (g + decay w), w = w - b.
struct LarsTerms {
  GradientTerms gradient{};  ///< without a penalty
  double momentum = 0.9;
  double step_size = 1e-3;  ///< the local rate
  double decay = 0;
};

/// Sums of squares of the parameter and of the gradient. Thread-safe.
[[nodiscard]] ExactSums lars_norms(const GradientTerms& terms,
                                   const float* param,
                                   const float* grad,
                                   std::size_t count);
[[nodiscard]] ExactSums lars_norms(const GradientTerms& terms,
                                   const double* param,
                                   const double* grad,
                                   std::size_t count);

/// Updates `count` consecutive elements; ranges must not overlap. Thread-safe on disjoint ranges.
void lars_update(const LarsTerms& terms,
                 float* param,
                 const float* grad,
                 float* momentum_buffer,
                 std::size_t count);
void lars_update(const LarsTerms& terms,
                 double* param,
                 const double* grad,
                 double* momentum_buffer,
                 std::size_t count);

}  // namespace argosy::optim::kernels
