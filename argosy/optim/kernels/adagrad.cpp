#include "argosy/optim/kernels/adagrad.h"

#include <cmath>

namespace argosy::optim::kernels {
namespace {

template <Penalty kPenalty, typename T>
ARGOSY_KERNEL_INLINE void loop(const AdagradTerms& terms,
                               T* __restrict param,
                               const T* __restrict grad,
                               T* __restrict sum,
                               std::size_t count) {
  const GradientTermsOf<T> gradient(terms.gradient);
  const T lr = static_cast<T>(terms.lr), eps = static_cast<T>(terms.eps);
  const T keep = static_cast<T>(terms.keep), start = static_cast<T>(terms.start);
  for (std::size_t i = 0; i < count; ++i) {
    const T g = effective<kPenalty>(grad[i], param[i], gradient);
    const T s = keep * sum[i] + start + g * g;
    sum[i] = s;
    param[i] = param[i] - lr * (g / (std::sqrt(s) + eps));
  }
}

template <typename T>
ARGOSY_KERNEL_INLINE void dispatch(
    const AdagradTerms& terms, T* p, const T* g, T* s, std::size_t count) {
  switch (terms.gradient.penalty) {
    case Penalty::kNone:
      return loop<Penalty::kNone>(terms, p, g, s, count);
    case Penalty::kL1:
      return loop<Penalty::kL1>(terms, p, g, s, count);
    case Penalty::kL2:
      return loop<Penalty::kL2>(terms, p, g, s, count);
  }
}

ARGOSY_KERNEL void adagrad_f32(
    const AdagradTerms& t, float* p, const float* g, float* s, std::size_t n) {
  dispatch(t, p, g, s, n);
}
ARGOSY_KERNEL void adagrad_f64(
    const AdagradTerms& t, double* p, const double* g, double* s, std::size_t n) {
  dispatch(t, p, g, s, n);
}

}  // namespace

void adagrad(
    const AdagradTerms& terms, float* param, const float* grad, float* sum, std::size_t count) {
  adagrad_f32(terms, param, grad, sum, count);
}

void adagrad(
    const AdagradTerms& terms, double* param, const double* grad, double* sum, std::size_t count) {
  adagrad_f64(terms, param, grad, sum, count);
}

}  // namespace argosy::optim::kernels
