#include "argosy/parallel/traffic/flat_values.h"

#include <algorithm>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "argosy/comm/collectives.h"

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

void average_values(const std::vector<at::Tensor>& tensors,
                    std::vector<double>& figures,
                    const comm::Group& group) {
  const comm::AllReduceOptions mean{.op = comm::ReduceOp::kAvg};
  const at::Tensor flat = tensors.empty() ? at::Tensor() : flat_copy(tensors);
  const comm::Work all = tensors.empty() ? comm::Work() : comm::all_reduce_async(flat, group, mean);
  if (!figures.empty()) {
    const at::Tensor numbers = at::empty({std::ssize(figures)}, at::kDouble);
    std::ranges::copy(figures, numbers.data_ptr<double>());
    comm::all_reduce(numbers, group, mean);
    std::copy_n(numbers.data_ptr<double>(), figures.size(), figures.begin());
  }
  all.wait();
  if (!tensors.empty()) {
    copy_back(flat, tensors);
  }
}

}  // namespace argosy::parallel::traffic
