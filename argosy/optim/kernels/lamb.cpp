#include "argosy/optim/kernels/lamb.h"

#include <cmath>

namespace argosy::optim::kernels {
namespace {

template <typename T>
struct Direction {
  T correction1, correction2, eps, decay;
  explicit Direction(const LambTerms& terms)
      : correction1(static_cast<T>(terms.correction1)),
        correction2(static_cast<T>(terms.correction2)),
        eps(static_cast<T>(terms.eps)),
        decay(static_cast<T>(terms.decay)) {}
  ARGOSY_KERNEL_INLINE T operator()(T m, T v, T w) const {
    return m / correction1 / (std::sqrt(v / correction2) + eps) + decay * w;
  }
};

template <typename T>
ARGOSY_KERNEL_INLINE ExactSums average_loop(const LambTerms& terms,
                                            const T* __restrict param,
                                            const T* __restrict grad,
                                            T* __restrict exp_avg,
                                            T* __restrict exp_avg_sq,
                                            std::size_t count) {
  const GradientTermsOf<T> gradient(terms.gradient);
  const Direction<T> direction(terms);
  const T beta1 = static_cast<T>(terms.beta1), weight1 = static_cast<T>(1 - terms.beta1);
  const T beta2 = static_cast<T>(terms.beta2), weight2 = static_cast<T>(1 - terms.beta2);
  return sum_squares(count,
                     [&](std::size_t i, double& of_param, double& of_update) ARGOSY_KERNEL_LAMBDA {
                       const T g = effective<Penalty::kNone>(grad[i], param[i], gradient);
                       const T m = beta1 * exp_avg[i] + weight1 * g;
                       const T v = beta2 * exp_avg_sq[i] + weight2 * (g * g);
                       exp_avg[i] = m;
                       exp_avg_sq[i] = v;
                       const double w = param[i], r = direction(m, v, param[i]);
                       of_param = w * w;
                       of_update = r * r;
                     });
}

template <typename T>
ARGOSY_KERNEL_INLINE void update_loop(const LambTerms& terms,
                                      double step_size,
                                      T* __restrict param,
                                      const T* __restrict exp_avg,
                                      const T* __restrict exp_avg_sq,
                                      std::size_t count) {
  const Direction<T> direction(terms);
  const T step = static_cast<T>(step_size);
  for (std::size_t i = 0; i < count; ++i) {
    param[i] = param[i] - step * direction(exp_avg[i], exp_avg_sq[i], param[i]);
  }
}

ARGOSY_KERNEL ExactSums averages_f32(
    const LambTerms& t, const float* p, const float* g, float* m, float* v, std::size_t n) {
  return average_loop(t, p, g, m, v, n);
}
ARGOSY_KERNEL ExactSums averages_f64(
    const LambTerms& t, const double* p, const double* g, double* m, double* v, std::size_t n) {
  return average_loop(t, p, g, m, v, n);
}
ARGOSY_KERNEL void update_f32(
    const LambTerms& t, double s, float* p, const float* m, const float* v, std::size_t n) {
  update_loop(t, s, p, m, v, n);
}
ARGOSY_KERNEL void update_f64(
    const LambTerms& t, double s, double* p, const double* m, const double* v, std::size_t n) {
  update_loop(t, s, p, m, v, n);
}

}  // namespace

ExactSums lamb_averages(const LambTerms& terms,
                        const float* param,
                        const float* grad,
                        float* exp_avg,
                        float* exp_avg_sq,
                        std::size_t count) {
  return averages_f32(terms, param, grad, exp_avg, exp_avg_sq, count);
}
ExactSums lamb_averages(const LambTerms& terms,
                        const double* param,
                        const double* grad,
                        double* exp_avg,
                        double* exp_avg_sq,
                        std::size_t count) {
  return averages_f64(terms, param, grad, exp_avg, exp_avg_sq, count);
}
void lamb_update(const LambTerms& terms,
                 double step_size,
                 float* param,
                 const float* exp_avg,
                 const float* exp_avg_sq,
                 std::size_t count) {
  update_f32(terms, step_size, param, exp_avg, exp_avg_sq, count);
}
void lamb_update(const LambTerms& terms,
                 double step_size,
                 double* param,
                 const double* exp_avg,
                 const double* exp_avg_sq,
                 std::size_t count) {
  update_f64(terms, step_size, param, exp_avg, exp_avg_sq, count);
}

}  // namespace argosy::optim::kernels
