#include "argosy/parallel/traffic/flat_values.h"

#include <algorithm>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

namespace argosy::parallel::traffic {

at::Tensor flat_copy(const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  const bool wide = std::ranges::any_of(
      tensors, [](const at::Tensor& each) { return each.scalar_type() == at::kDouble; });
  std::vector<at::Tensor> flat;
  flat.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    flat.push_back(tensor.detach().reshape({-1}).to(wide ? at::kDouble : at::kFloat));
  }
  return at::cat(flat);
}

std::vector<at::Tensor> parts_like(const at::Tensor& flat, const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> parts;
  int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    parts.push_back(flat.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
    offset += tensor.numel();
  }
  return parts;
}

void copy_back(const at::Tensor& flat, const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> parts = parts_like(flat, tensors);
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].detach().copy_(parts[i]);
  }
}

}  // namespace argosy::parallel::traffic
