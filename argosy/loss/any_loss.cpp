#include "argosy/loss/any_loss.h"

#include <ATen/ops/scalar_tensor.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/loss/checks.h"

namespace argosy::loss {

at::Tensor Loss::operator()(const at::Tensor& output, const at::Tensor& target) const {
  ARGOSY_CHECK(
      function_ != nullptr, "loss.Loss", "there is no loss: give it one, e.g. CrossEntropy()");
  at::Tensor value = function_(output, target);
  ARGOSY_CHECK(value.defined() && value.numel() == 1,
               "loss.Loss",
               "\"{}\" gave {}: expected one number. Reduce it: .mean(), or Reduction::kMean",
               name_,
               text::shape(value));
  return value.dim() == 0 ? value : value.reshape({});
}

double Loss::count(const at::Tensor& output, const at::Tensor& target) const {
  if (count_) {
    return count_(output, target);
  }
  return output.defined() && output.dim() > 0 ? static_cast<double>(output.size(0)) : 1.0;
}

at::Tensor Loss::counted(const at::Tensor& output, const at::Tensor& target) const {
  return counted_ ? counted_(output, target)
                  : at::scalar_tensor(count(output, target), at::kDouble);
}

}  // namespace argosy::loss
