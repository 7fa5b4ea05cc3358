#include "argosy/optim/gradients.h"

#include <algorithm>

#include "argosy/base/check.h"

namespace argosy::optim {

std::vector<at::Tensor> unique_gradients(const std::string& where,
                                         const engine::NamedTensors& parameters,
                                         const ShardedStep* sharded) {
  std::vector<at::Tensor> grads;
  std::vector<at::Tensor> parts;
  for (const auto& [name, parameter] : parameters) {
    const at::Tensor& grad = parameter.grad();
    if (!grad.defined() || std::any_of(grads.begin(), grads.end(), [&](const at::Tensor& other) {
          return other.is_same(grad);
        })) {
      continue;
    }
    grads.push_back(grad);
    if (sharded == nullptr) {
      (void)checked_precision(where, name + ".grad", grad);
    } else {
      ARGOSY_CHECK(engine::same_storage_order(parameter, grad),
                   where,
                   "{}.grad was replaced by one in another order of memory than its parameter's, "
                   "and this process has a part of it only",
                   name);
      parts.push_back(sharded->gradient_of(parameter));
      (void)checked_precision(where, name + ".grad", parts.back());
    }
  }
  return sharded != nullptr ? parts : grads;
}

}  // namespace argosy::optim
