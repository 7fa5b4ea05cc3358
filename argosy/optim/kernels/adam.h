#pragma once

#include <cstddef>

#include "argosy/optim/kernels/gradient.h"

namespace argosy::optim::kernels {

/// One step's constants of Adam and AdamW, computed in double as PyTorch does.
struct AdamTerms {
  GradientTerms gradient{};
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double step_size = 1e-3;  ///< lr / (1 - beta1^step)
  double correction2 = 1;   ///< sqrt(1 - beta2^step)
  double keep = 1;          ///< factor on the parameter before the update: 1 - lr * decay (AdamW)
};

/// Updates `count` consecutive elements; ranges must not overlap.
/// `max_exp_avg_sq` is null without amsgrad. Thread-safe on disjoint ranges.
void adam(const AdamTerms& terms,
          float* param,
          const float* grad,
          float* exp_avg,
          float* exp_avg_sq,
          float* max_exp_avg_sq,
          std::size_t count);
void adam(const AdamTerms& terms,
          double* param,
          const double* grad,
          double* exp_avg,
          double* exp_avg_sq,
          double* max_exp_avg_sq,
          std::size_t count);

}  // namespace argosy::optim::kernels
