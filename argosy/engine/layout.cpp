#include "argosy/engine/layout.h"

#include "argosy/engine/memory_format.h"

namespace argosy::engine {

bool is_dense(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided &&
         tensor.is_non_overlapping_and_dense();
}

bool same_storage_order(const at::Tensor& a, const at::Tensor& b) {
  if (!is_dense(a) || !is_dense(b) || a.sizes() != b.sizes()) {
    return false;
  }
  if (a.numel() == 0) {
    return true;
  }
  for (int64_t dim = 0; dim < a.dim(); ++dim) {
    if (a.size(dim) != 1 && a.stride(dim) != b.stride(dim)) {
      return false;
    }
  }
  return true;
}

void to_channels_last(const torch::nn::Module& module) {
  lay_out(module, MemoryFormat::kChannelsLast);
}

}  // namespace argosy::engine
