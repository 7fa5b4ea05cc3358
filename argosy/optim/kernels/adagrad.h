#pragma once

#include <cstddef>

#include "argosy/optim/kernels/gradient.h"

namespace argosy::optim::kernels {

/// One step's constants of Adagrad: s = keep s + start + g^2, w = w - lr g / (sqrt(s) + eps).
struct AdagradTerms {
  GradientTerms gradient{};
  double lr = 1e-2;  ///< decayed
  double eps = 1e-10;
  double keep = 1;   ///< 0 on the first step, when the sum starts
  double start = 0;  ///< initial_accumulator_value on the first step
};

/// Updates `count` consecutive elements; ranges must not overlap. Thread-safe on disjoint ranges.
void adagrad(
    const AdagradTerms& terms, float* param, const float* grad, float* sum, std::size_t count);
void adagrad(
    const AdagradTerms& terms, double* param, const double* grad, double* sum, std::size_t count);

}  // namespace argosy::optim::kernels
