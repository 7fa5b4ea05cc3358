#include "argosy/optim/kernels/adam.h"

#include <cmath>

namespace argosy::optim::kernels {
namespace {

template <Penalty kPenalty, bool kAmsgrad, bool kSlow, typename T>
ARGOSY_KERNEL_INLINE void loop(const AdamTerms& terms,
                               T* __restrict param,
                               const T* __restrict grad,
                               T* __restrict exp_avg,
                               T* __restrict exp_avg_sq,
                               [[maybe_unused]] T* __restrict max_exp_avg_sq,
                               std::size_t count) {
  const GradientTermsOf<T> gradient(terms.gradient);
  const T weight = static_cast<T>(1 - terms.beta1), rest = T(1) - weight;
  const T beta2 = static_cast<T>(terms.beta2), weight2 = static_cast<T>(1 - terms.beta2);
  const T eps = static_cast<T>(terms.eps), correction2 = static_cast<T>(terms.correction2);
  const T step_size = static_cast<T>(terms.step_size), keep = static_cast<T>(terms.keep);
  for (std::size_t i = 0; i < count; ++i) {
    const T g = effective<kPenalty>(grad[i], param[i], gradient);
    // torch.lerp: exact at both ends
    const T m = kSlow ? exp_avg[i] + weight * (g - exp_avg[i]) : g - rest * (g - exp_avg[i]);
    const T v = exp_avg_sq[i] * beta2 + weight2 * (g * g);
    T bound = v;
    if constexpr (kAmsgrad) {  // torch.maximum: NaN in either wins
      const T old = max_exp_avg_sq[i];
      bound = (old > v || old != old) ? old : v;
      max_exp_avg_sq[i] = bound;
    }
    const T denominator = std::sqrt(bound) / correction2 + eps;
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    param[i] = param[i] * keep - step_size * (m / denominator);
  }
}

template <Penalty kPenalty, typename T, typename... Args>
ARGOSY_KERNEL_INLINE void choose(const AdamTerms& terms, bool amsgrad, Args... args) {
  if (terms.beta1 > 0.5) {
    amsgrad ? loop<kPenalty, true, true, T>(terms, args...)
            : loop<kPenalty, false, true, T>(terms, args...);
  } else {
    amsgrad ? loop<kPenalty, true, false, T>(terms, args...)
            : loop<kPenalty, false, false, T>(terms, args...);
  }
}

template <typename T>
ARGOSY_KERNEL_INLINE void dispatch(
    const AdamTerms& terms, T* p, const T* g, T* m, T* v, T* max_v, std::size_t count) {
  const bool amsgrad = max_v != nullptr;
  switch (terms.gradient.penalty) {
    case Penalty::kNone:
      return choose<Penalty::kNone, T>(terms, amsgrad, p, g, m, v, max_v, count);
    case Penalty::kL1:
      return choose<Penalty::kL1, T>(terms, amsgrad, p, g, m, v, max_v, count);
    case Penalty::kL2:
      return choose<Penalty::kL2, T>(terms, amsgrad, p, g, m, v, max_v, count);
  }
}

// The variants need plain functions: overloads and templates cannot be cloned.
ARGOSY_KERNEL void adam_f32(
    const AdamTerms& t, float* p, const float* g, float* m, float* v, float* x, std::size_t n) {
  dispatch(t, p, g, m, v, x, n);
}
ARGOSY_KERNEL void adam_f64(const AdamTerms& t,
                            double* p,
                            const double* g,
                            double* m,
                            double* v,
                            double* x,
                            std::size_t n) {
  dispatch(t, p, g, m, v, x, n);
}

}  // namespace

void adam(const AdamTerms& terms,
          float* param,
          const float* grad,
          float* exp_avg,
          float* exp_avg_sq,
          float* max_exp_avg_sq,
          std::size_t count) {
  adam_f32(terms, param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, count);
}

void adam(const AdamTerms& terms,
          double* param,
          const double* grad,
          double* exp_avg,
          double* exp_avg_sq,
          double* max_exp_avg_sq,
          std::size_t count) {
  adam_f64(terms, param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, count);
}

}  // namespace argosy::optim::kernels
