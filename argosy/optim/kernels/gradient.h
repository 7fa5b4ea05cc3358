#pragma once

#include <limits>

#include "argosy/base/simd.h"

namespace argosy::optim::kernels {

/// Penalty that is added to the gradient.
enum class Penalty { kNone, kL1, kL2 };

/// The changes of a gradient before the update sees it, in this order: scaled, limited to [-limit,
/// limit], penalised. The defaults change no bit. The gradient itself is not written.
struct GradientTerms {
  double scale = 1.0;
  double limit = std::numeric_limits<double>::infinity();
  Penalty penalty = Penalty::kNone;
  double coeff = 0.0;
};

/// The same in the precision of the data.
template <typename T>
struct GradientTermsOf {
  T scale, limit, coeff;
  explicit GradientTermsOf(const GradientTerms& terms)
      : scale(static_cast<T>(terms.scale)),
        limit(static_cast<T>(terms.limit)),
        coeff(static_cast<T>(terms.coeff)) {}
};

/// NaN stays NaN; the derivative of |p| at 0 is 0, as in autograd.
template <Penalty kPenalty, typename T>
ARGOSY_KERNEL_INLINE T effective(T grad, T param, const GradientTermsOf<T>& terms) {
  T g = grad * terms.scale;
  g = g < -terms.limit ? -terms.limit : g;
  g = g > terms.limit ? terms.limit : g;
  if constexpr (kPenalty == Penalty::kL2) {
    g = g + terms.coeff * param;
  } else if constexpr (kPenalty == Penalty::kL1) {
    const T up = param > T(0) ? terms.coeff : T(0);
    const T down = param < T(0) ? terms.coeff : T(0);
    g = g + (up - down);
  }
  return g;
}

}  // namespace argosy::optim::kernels
