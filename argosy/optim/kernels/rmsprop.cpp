#include "argosy/optim/kernels/rmsprop.h"

#include <cmath>

namespace argosy::optim::kernels {
namespace {

template <Penalty kPenalty, bool kMomentum, bool kCentered, typename T>
ARGOSY_KERNEL_INLINE void loop(const RmspropTerms& terms,
                               T* __restrict param,
                               const T* __restrict grad,
                               T* __restrict square_avg,
                               [[maybe_unused]] T* __restrict buffer,
                               [[maybe_unused]] T* __restrict grad_avg,
                               std::size_t count) {
  const GradientTermsOf<T> gradient(terms.gradient);
  const T alpha = static_cast<T>(terms.alpha), weight = static_cast<T>(1 - terms.alpha);
  const T inside = static_cast<T>(terms.eps_inside), outside = static_cast<T>(terms.eps_outside);
  const T momentum = static_cast<T>(terms.momentum);
  const T inner = static_cast<T>(terms.inner), outer = static_cast<T>(terms.outer);
  for (std::size_t i = 0; i < count; ++i) {
    const T g = effective<kPenalty>(grad[i], param[i], gradient);
    const T v = square_avg[i] * alpha + weight * (g * g);
    square_avg[i] = v;
    T spread = v;
    if constexpr (kCentered) {
      const T m = grad_avg[i] + weight * (g - grad_avg[i]);
      grad_avg[i] = m;
      spread = v - m * m;
    }
    T step = inner * g / (std::sqrt(spread + inside) + outside);
    if constexpr (kMomentum) {
      step = buffer[i] * momentum + step;
      buffer[i] = step;
    }
    param[i] = param[i] - outer * step;
  }
}

template <Penalty kPenalty, typename T, typename... Args>
ARGOSY_KERNEL_INLINE void choose(const RmspropTerms& terms,
                                 bool momentum,
                                 bool centered,
                                 Args... args) {
  if (momentum) {
    centered ? loop<kPenalty, true, true, T>(terms, args...)
             : loop<kPenalty, true, false, T>(terms, args...);
  } else {
    centered ? loop<kPenalty, false, true, T>(terms, args...)
             : loop<kPenalty, false, false, T>(terms, args...);
  }
}

template <typename T>
ARGOSY_KERNEL_INLINE void dispatch(
    const RmspropTerms& terms, T* p, const T* g, T* v, T* b, T* m, std::size_t count) {
  const bool momentum = b != nullptr, centered = m != nullptr;
  switch (terms.gradient.penalty) {
    case Penalty::kNone:
      return choose<Penalty::kNone, T>(terms, momentum, centered, p, g, v, b, m, count);
    case Penalty::kL1:
      return choose<Penalty::kL1, T>(terms, momentum, centered, p, g, v, b, m, count);
    case Penalty::kL2:
      return choose<Penalty::kL2, T>(terms, momentum, centered, p, g, v, b, m, count);
  }
}

ARGOSY_KERNEL void rmsprop_f32(
    const RmspropTerms& t, float* p, const float* g, float* v, float* b, float* m, std::size_t n) {
  dispatch(t, p, g, v, b, m, n);
}
ARGOSY_KERNEL void rmsprop_f64(const RmspropTerms& t,
                               double* p,
                               const double* g,
                               double* v,
                               double* b,
                               double* m,
                               std::size_t n) {
  dispatch(t, p, g, v, b, m, n);
}

}  // namespace

void rmsprop(const RmspropTerms& terms,
             float* param,
             const float* grad,
             float* square_avg,
             float* momentum_buffer,
             float* grad_avg,
             std::size_t count) {
  rmsprop_f32(terms, param, grad, square_avg, momentum_buffer, grad_avg, count);
}

void rmsprop(const RmspropTerms& terms,
             double* param,
             const double* grad,
             double* square_avg,
             double* momentum_buffer,
             double* grad_avg,
             std::size_t count) {
  rmsprop_f64(terms, param, grad, square_avg, momentum_buffer, grad_avg, count);
}

}  // namespace argosy::optim::kernels
