#include "argosy/optim/gradients.h"

#include <algorithm>

namespace argosy::optim {

std::vector<at::Tensor> unique_gradients(const std::string& where,
                                         const engine::NamedTensors& parameters) {
  std::vector<at::Tensor> grads;
  for (const auto& [name, parameter] : parameters) {
    const at::Tensor& grad = parameter.grad();
    if (!grad.defined() || std::any_of(grads.begin(), grads.end(), [&](const at::Tensor& other) {
          return other.is_same(grad);
        })) {
      continue;
    }
    (void)checked_precision(where, name + ".grad", grad);
    grads.push_back(grad);
  }
  return grads;
}

}  // namespace argosy::optim
