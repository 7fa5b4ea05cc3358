#include "argosy/optim/sharded_step.h"

#include <ATen/ops/zeros.h>

namespace argosy::optim {

at::Tensor ShardedStep::make_state(const at::Tensor& values) const {
  return at::zeros({values.numel()}, values.options().requires_grad(false));
}

}  // namespace argosy::optim
