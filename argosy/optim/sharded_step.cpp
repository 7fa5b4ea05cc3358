#include "argosy/optim/sharded_step.h"

namespace argosy::optim {

at::Tensor elements_of(const at::Tensor& dense, const IndexRange& part) {
  return dense.as_strided({part.size()}, {1}, dense.storage_offset() + part.begin);
}

}  // namespace argosy::optim
