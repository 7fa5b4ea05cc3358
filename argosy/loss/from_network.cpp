#include "argosy/loss/from_network.h"

#include <ATen/TensorOperators.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"

namespace argosy::loss {

at::Tensor FromNetwork::operator()(const at::Tensor& output, const at::Tensor& /*target*/) const {
  ARGOSY_CHECK(output.defined() && output.numel() == 1,
               "loss.FromNetwork",
               "expected a network that returns its loss, one number, and it returned {}. A "
               "network that returns logits has CrossEntropy()",
               text::shape(output));
  return output;
}

at::Tensor FromNetwork::counted(const at::Tensor& /*output*/, const at::Tensor& target) const {
  return target.ne(options_.ignore_index).sum().to(at::kDouble);
}

double FromNetwork::count(const at::Tensor& output, const at::Tensor& target) const {
  return counted(output, target).item<double>();
}

}  // namespace argosy::loss
