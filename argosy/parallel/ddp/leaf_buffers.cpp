#include "argosy/parallel/ddp/leaf_buffers.h"

#include <cstddef>

#include <ATen/core/grad_mode.h>

namespace argosy::parallel::ddp {

std::vector<at::Tensor> LeafBuffers::copies() const {
  std::vector<at::Tensor> values;
  for (const at::Tensor& buffer : buffers_) {
    values.push_back(buffer.detach().clone());
  }
  return values;
}

/// Unseen by autograd, so that graphs that saved a buffer stay valid.
void LeafBuffers::set(const std::vector<at::Tensor>& values) const {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < values.size(); ++i) {
    buffers_[i].variable_data().copy_(values[i]);
  }
}

void LeafBuffers::begin(const MicroBatch& micro_batch) {
  if (micro_batch.leaves == 1 || !micro_batch.begins_leaf()) {
    return;
  }
  if (micro_batch.leaf == 0) {
    begun_ = copies();
    first_.clear();
    return;
  }
  if (micro_batch.leaf == 1) {
    first_ = copies();
  }
  set(begun_);
}

void LeafBuffers::end_update() {
  set(first_);
  first_.clear();
}

}  // namespace argosy::parallel::ddp
