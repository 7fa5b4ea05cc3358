#pragma once

#include <cstddef>

#include "argosy/optim/kernels/gradient.h"
#include "argosy/optim/kernels/squares.h"

namespace argosy::optim::kernels {

/// One step's constants of Lamb.
struct LambTerms {
  GradientTerms gradient{};  ///< without a penalty
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-6;
  double correction1 = 1;  ///< 1 - beta1^step
  double correction2 = 1;  ///< 1 - beta2^step
  double decay = 0;
};

/// Moves the averages of `count` consecutive elements on, and sums up the squares of the parameter
/// and of r = m / correction1 / (sqrt(v / correction2) + eps) + decay * w. Ranges must not overlap;
/// thread-safe on disjoint ones.
[[nodiscard]] ExactSums lamb_averages(const LambTerms& terms,
                                      const float* param,
                                      const float* grad,
                                      float* exp_avg,
                                      float* exp_avg_sq,
                                      std::size_t count);
[[nodiscard]] ExactSums lamb_averages(const LambTerms& terms,
                                      const double* param,
                                      const double* grad,
                                      double* exp_avg,
                                      double* exp_avg_sq,
                                      std::size_t count);

/// w = w - step_size * r. To make r again costs less than to store and read it.
void lamb_update(const LambTerms& terms,
                 double step_size,
                 float* param,
                 const float* exp_avg,
                 const float* exp_avg_sq,
                 std::size_t count);
void lamb_update(const LambTerms& terms,
                 double step_size,
                 double* param,
                 const double* exp_avg,
                 const double* exp_avg_sq,
                 std::size_t count);

}  // namespace argosy::optim::kernels
