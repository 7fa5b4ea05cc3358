#include "argosy/optim/kernels/lars.h"

namespace argosy::optim::kernels {
namespace {

template <typename T>
ARGOSY_KERNEL_INLINE ExactSums norm_loop(const GradientTerms& terms,
                                         const T* __restrict param,
                                         const T* __restrict grad,
                                         std::size_t count) {
  const GradientTermsOf<T> gradient(terms);
  return sum_squares(
      count, [&](std::size_t i, double& of_param, double& of_update) ARGOSY_KERNEL_LAMBDA {
        const double w = param[i], g = effective<Penalty::kNone>(grad[i], param[i], gradient);
        of_param = w * w;
        of_update = g * g;
      });
}

template <typename T>
ARGOSY_KERNEL_INLINE void update_loop(const LarsTerms& terms,
                                      T* __restrict param,
                                      const T* __restrict grad,
                                      T* __restrict buffer,
                                      std::size_t count) {
  const GradientTermsOf<T> gradient(terms.gradient);
  const T momentum = static_cast<T>(terms.momentum), step = static_cast<T>(terms.step_size);
  const T decay = static_cast<T>(terms.decay);
  for (std::size_t i = 0; i < count; ++i) {
    const T g = effective<Penalty::kNone>(grad[i], param[i], gradient);
    const T b = momentum * buffer[i] + step * (g + decay * param[i]);
    buffer[i] = b;
    param[i] = param[i] - b;
  }
}

ARGOSY_KERNEL ExactSums norms_f32(const GradientTerms& t,
                                  const float* p,
                                  const float* g,
                                  std::size_t n) {
  return norm_loop(t, p, g, n);
}
ARGOSY_KERNEL ExactSums norms_f64(const GradientTerms& t,
                                  const double* p,
                                  const double* g,
                                  std::size_t n) {
  return norm_loop(t, p, g, n);
}
ARGOSY_KERNEL void update_f32(
    const LarsTerms& t, float* p, const float* g, float* b, std::size_t n) {
  update_loop(t, p, g, b, n);
}
ARGOSY_KERNEL void update_f64(
    const LarsTerms& t, double* p, const double* g, double* b, std::size_t n) {
  update_loop(t, p, g, b, n);
}

}  // namespace

ExactSums lars_norms(const GradientTerms& terms,
                     const float* param,
                     const float* grad,
                     std::size_t count) {
  return norms_f32(terms, param, grad, count);
}
ExactSums lars_norms(const GradientTerms& terms,
                     const double* param,
                     const double* grad,
                     std::size_t count) {
  return norms_f64(terms, param, grad, count);
}
void lars_update(const LarsTerms& terms,
                 float* param,
                 const float* grad,
                 float* momentum_buffer,
                 std::size_t count) {
  update_f32(terms, param, grad, momentum_buffer, count);
}
void lars_update(const LarsTerms& terms,
                 double* param,
                 const double* grad,
                 double* momentum_buffer,
                 std::size_t count) {
  update_f64(terms, param, grad, momentum_buffer, count);
}

}  // namespace argosy::optim::kernels
