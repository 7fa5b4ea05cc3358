#include "argosy/data/collate.h"

#include <fmt/format.h>

#include <torch/types.h>

#include "argosy/base/error.h"
#include "argosy/base/text.h"
#include "argosy/data/rows.h"

namespace argosy::data {
at::Tensor stack(const std::vector<at::Tensor>& samples, const BatchContext& context) {
  const at::Tensor& first = samples.at(0);
  for (size_t i = 0; i < samples.size(); ++i) {
    const int64_t index = i < context.indices.size() ? context.indices[i] : -1;
    if (!samples[i].defined()) {
      throw DataError(
          "data.collate", "a tensor of the sample is undefined", {.path = "", .index = index});
    }
    if (samples[i].sizes() != first.sizes() || samples[i].scalar_type() != first.scalar_type()) {
      throw DataError(
          "data.collate",
          fmt::format("expected the shape {} of the batch's first sample, got {}. Resize "
                      "or pad in get(), or pass a collate function to the DataLoader",
                      text::shape_and_type(first),
                      text::shape_and_type(samples[i])),
          {.path = "", .index = index});
    }
  }
  if (!first.device().is_cpu() || first.layout() != at::kStrided) {
    return at::stack(samples);
  }
  std::vector<int64_t> sizes = first.sizes().vec();
  sizes.insert(sizes.begin(), static_cast<int64_t>(samples.size()));
  at::Tensor out = context.empty_batch(sizes, first.scalar_type());
  const detail::RowWriter rows(out);
  for (size_t i = 0; i < samples.size(); ++i) {
    rows.write(static_cast<int64_t>(i), samples[i]);
  }
  return out;
}

at::Tensor in_memory_format(at::Tensor tensor, const BatchContext& context) {
  if (!tensor.defined() || !tensor.device().is_cpu() || tensor.layout() != at::kStrided ||
      context.memory_format == at::MemoryFormat::Contiguous) {
    return tensor;
  }
  const at::MemoryFormat wanted = context.format_of(tensor.dim(), tensor.scalar_type());
  if (wanted == at::MemoryFormat::Contiguous || tensor.is_contiguous(wanted)) {
    return tensor;
  }
  at::Tensor out = context.empty_batch(tensor.sizes(), tensor.scalar_type());
  const detail::RowWriter rows(out);
  for (int64_t i = 0; i < tensor.size(0); ++i) {
    rows.write(i, tensor.select(0, i));
  }
  return out;
}

}  // namespace argosy::data
