#include "argosy/optim/tensor_range.h"

#include <cmath>

#include <ATen/Functions.h>

namespace argosy::optim {

at::Tensor effective(const TensorRange& range, const kernels::GradientTerms& terms) {
  at::Tensor g = terms.scale == 1 ? range.grad : range.grad.mul(terms.scale);
  if (std::isfinite(terms.limit)) {
    g = g.clamp(-terms.limit, terms.limit);
  }
  switch (terms.penalty) {
    case kernels::Penalty::kNone:
      return g;
    case kernels::Penalty::kL1:
      return g.add(range.param.sign().mul_(terms.coeff));
    case kernels::Penalty::kL2:
      return g.add(range.param.mul(terms.coeff));
  }
  return g;
}

double sum_of_squares(const at::Tensor& tensor) {
  return tensor.to(at::kDouble).square().sum().item<double>();
}

}  // namespace argosy::optim
