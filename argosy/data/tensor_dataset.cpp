#include "argosy/data/tensor_dataset.h"

#include <torch/types.h>

#include "argosy/base/check.h"
#include "argosy/data/rows.h"

namespace argosy::data {

at::Tensor gather_rows(const at::Tensor& source,
                       std::span<const int64_t> indices,
                       const BatchContext& context) {
  const int64_t rows = source.size(0);
  for (const int64_t index : indices) {
    if (index < 0 || index >= rows) {
      throw DataError("data.gather",
                      fmt::format("index outside the data set of {} samples", rows),
                      {.path = "", .index = index});
    }
  }
  std::vector<int64_t> sizes = source.sizes().vec();
  sizes[0] = static_cast<int64_t>(indices.size());
  at::Tensor out = context.empty_batch(sizes, source.scalar_type());
  detail::RowWriter(out).gather(source, indices);
  return out;
}

int64_t check_same_rows(std::span<const at::Tensor> tensors) {
  int64_t rows = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    ARGOSY_CHECK(tensors[i].defined() && tensors[i].dim() > 0 && tensors[i].device().is_cpu(),
                 "data.TensorDataset",
                 "tensor {} must be a CPU tensor with a first dimension",
                 i);
    rows = i == 0 ? tensors[i].size(0) : rows;
    ARGOSY_CHECK(tensors[i].size(0) == rows,
                 "data.TensorDataset",
                 "expected equal first dimensions, got {} in tensor 0 and {} in tensor {}",
                 rows,
                 tensors[i].size(0),
                 i);
  }
  return rows;
}

}  // namespace argosy::data
