#include "argosy/optim/sharded_step.h"

#include <ATen/ops/zeros.h>

namespace argosy::optim {

at::Tensor ShardedStep::make_state(const at::Tensor& values) const {
  return at::zeros({values.numel()}, values.options().requires_grad(false));
}

at::Tensor elements_of(const at::Tensor& dense, const IndexRange& part) {
  return dense.as_strided({part.size()}, {1}, dense.storage_offset() + part.begin);
}

}  // namespace argosy::optim
