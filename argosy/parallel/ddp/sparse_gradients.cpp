#include "argosy/parallel/ddp/sparse_gradients.h"

#include <algorithm>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/modules/embedding.h>

#include "argosy/base/check.h"
#include "argosy/comm/collectives.h"

namespace argosy::parallel::ddp {
namespace {

/// nullptr: it has none, or a dense one.
const at::Tensor* sparse_weight_of(const torch::nn::Module& module) {
  if (const auto* const one = dynamic_cast<const torch::nn::EmbeddingImpl*>(&module)) {
    return one->options.sparse() ? &one->weight : nullptr;
  }
  if (const auto* const bag = dynamic_cast<const torch::nn::EmbeddingBagImpl*>(&module)) {
    return bag->options.sparse() ? &bag->weight : nullptr;
  }
  return nullptr;
}

}  // namespace

std::vector<std::pair<std::string, at::Tensor>> sparse_weights(const torch::nn::Module& module) {
  std::vector<std::pair<std::string, at::Tensor>> found;
  for (const auto& item : module.named_modules()) {
    const at::Tensor* const weight = sparse_weight_of(*item.value());
    const auto is_it = [&](const auto& each) { return each.second.is_same(*weight); };
    if (weight != nullptr && weight->requires_grad() && std::ranges::none_of(found, is_it)) {
      found.emplace_back(item.key().empty() ? "weight" : item.key() + ".weight", *weight);
    }
  }
  return found;
}

SparseGradients::SparseGradients(std::vector<std::pair<std::string, at::Tensor>> weights,
                                 const comm::Group& group,
                                 std::chrono::milliseconds timeout)
    : weights_(std::move(weights)), group_(group), timeout_(timeout) {}

void SparseGradients::average() const {
  const at::NoGradGuard no_grad;
  for (const auto& [name, weight] : weights_) {
    average(name, weight);
  }
}

void SparseGradients::average(const std::string& name, const at::Tensor& weight) const {
  at::Tensor& gradient = weight.mutable_grad();
  at::Tensor numbers = at::empty({0}, weight.options().dtype(at::kLong).requires_grad(false));
  at::Tensor rows = at::empty({0, weight.size(1)}, weight.options().requires_grad(false));
  if (gradient.defined()) {
    ARGOSY_CHECK(gradient.sizes() == weight.sizes(),
                 "parallel.ddp",
                 "the gradient of parameter {} was replaced by one of another shape",
                 name);
    // Dense where the weight is used by something else besides (tied weights).
    const at::Tensor own =
        (gradient.layout() == at::kStrided ? gradient.to_sparse(1) : gradient).coalesce();
    numbers = own.indices().select(0, 0).contiguous();
    rows = own.values().contiguous();
  }
  numbers = comm::all_gather_uneven(numbers, group_, {.timeout = timeout_});
  rows = comm::all_gather_uneven(rows, group_, {.timeout = timeout_});
  if (numbers.numel() == 0 && !gradient.defined()) {
    return;
  }
  gradient = at::_sparse_coo_tensor_unsafe(numbers.unsqueeze(0), rows, weight.sizes()).coalesce();
  gradient.values().div_(group_.size());
}

}  // namespace argosy::parallel::ddp
