#pragma once

#include <cstddef>

#include "argosy/optim/kernels/gradient.h"

namespace argosy::optim::kernels {

/// One step's constants of RMSProp: b = momentum b + inner g / d, w = w - outer b, where
/// d = sqrt(v - m^2 + eps_inside) + eps_outside.
struct RmspropTerms {
  GradientTerms gradient{};
  double alpha = 0.99;
  double eps_inside = 0;
  double eps_outside = 1e-8;
  double momentum = 0;
  double inner = 1;
  double outer = 1e-2;
};

/// Updates `count` consecutive elements; ranges must not overlap.
/// `momentum_buffer` is null without momentum, `grad_avg` (m) unless centered. Thread-safe on
/// disjoint ranges.
void rmsprop(const RmspropTerms& terms,
             float* param,
             const float* grad,
             float* square_avg,
             float* momentum_buffer,
             float* grad_avg,
             std::size_t count);
void rmsprop(const RmspropTerms& terms,
             double* param,
             const double* grad,
             double* square_avg,
             double* momentum_buffer,
             double* grad_avg,
             std::size_t count);

}  // namespace argosy::optim::kernels
