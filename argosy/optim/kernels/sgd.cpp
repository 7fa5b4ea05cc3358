#include "argosy/optim/kernels/sgd.h"

namespace argosy::optim::kernels {
namespace {

enum class Kind { kPlain, kMomentum, kNesterov };

template <Penalty kPenalty, Kind kKind, typename T>
ARGOSY_KERNEL_INLINE void loop(const SgdTerms& terms,
                               T* __restrict param,
                               const T* __restrict grad,
                               [[maybe_unused]] T* __restrict buffer,
                               std::size_t count) {
  const GradientTermsOf<T> gradient(terms.gradient);
  const T lr = static_cast<T>(terms.lr), momentum = static_cast<T>(terms.momentum);
  const T weight = static_cast<T>(terms.weight), look_ahead = static_cast<T>(terms.look_ahead);
  for (std::size_t i = 0; i < count; ++i) {
    T g = effective<kPenalty>(grad[i], param[i], gradient);
    if constexpr (kKind != Kind::kPlain) {
      const T b = momentum * buffer[i] + weight * g;
      buffer[i] = b;
      g = kKind == Kind::kNesterov ? g + look_ahead * b : b;
    }
    param[i] = param[i] - lr * g;
  }
}

template <Penalty kPenalty, typename T>
ARGOSY_KERNEL_INLINE void choose(const SgdTerms& terms, T* p, const T* g, T* b, std::size_t count) {
  if (b == nullptr) {
    loop<kPenalty, Kind::kPlain>(terms, p, g, b, count);
  } else if (terms.nesterov) {
    loop<kPenalty, Kind::kNesterov>(terms, p, g, b, count);
  } else {
    loop<kPenalty, Kind::kMomentum>(terms, p, g, b, count);
  }
}

template <typename T>
ARGOSY_KERNEL_INLINE void dispatch(
    const SgdTerms& terms, T* p, const T* g, T* b, std::size_t count) {
  switch (terms.gradient.penalty) {
    case Penalty::kNone:
      return choose<Penalty::kNone>(terms, p, g, b, count);
    case Penalty::kL1:
      return choose<Penalty::kL1>(terms, p, g, b, count);
    case Penalty::kL2:
      return choose<Penalty::kL2>(terms, p, g, b, count);
  }
}

ARGOSY_KERNEL void sgd_f32(const SgdTerms& t, float* p, const float* g, float* b, std::size_t n) {
  dispatch(t, p, g, b, n);
}
ARGOSY_KERNEL void sgd_f64(
    const SgdTerms& t, double* p, const double* g, double* b, std::size_t n) {
  dispatch(t, p, g, b, n);
}

}  // namespace

void sgd(const SgdTerms& terms,
         float* param,
         const float* grad,
         float* momentum_buffer,
         std::size_t count) {
  sgd_f32(terms, param, grad, momentum_buffer, count);
}

void sgd(const SgdTerms& terms,
         double* param,
         const double* grad,
         double* momentum_buffer,
         std::size_t count) {
  sgd_f64(terms, param, grad, momentum_buffer, count);
}

}  // namespace argosy::optim::kernels
