#pragma once

#include <cstddef>

#include "argosy/optim/kernels/gradient.h"

namespace argosy::optim::kernels {

/// One step's constants of SGD and Momentum.
struct SgdTerms {
  GradientTerms gradient{};
  double lr = 1e-2;
  double momentum = 0;    ///< factor on the buffer; 0 on the first step, when the buffer starts
  double weight = 1;      ///< factor on the gradient that enters the buffer: 1 - dampening
  double look_ahead = 0;  ///< Nesterov's momentum, with `nesterov`
  bool nesterov = false;
};

/// Updates `count` consecutive elements; ranges must not overlap.
/// `momentum_buffer` is null without momentum. Thread-safe on disjoint ranges.
void sgd(const SgdTerms& terms,
         float* param,
         const float* grad,
         float* momentum_buffer,
         std::size_t count);
void sgd(const SgdTerms& terms,
         double* param,
         const double* grad,
         double* momentum_buffer,
         std::size_t count);

}  // namespace argosy::optim::kernels
