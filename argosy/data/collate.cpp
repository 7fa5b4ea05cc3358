#include "argosy/data/collate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include <torch/types.h>

#include "argosy/base/error.h"

namespace argosy::data {
namespace {

std::string describe(const at::Tensor& tensor) {
  return fmt::format(
      "[{}] of {}", fmt::join(tensor.sizes(), ", "), c10::toString(tensor.scalar_type()));
}

}  // namespace

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
                      describe(first),
                      describe(samples[i])),
          {.path = "", .index = index});
    }
  }
  if (!first.device().is_cpu() || first.layout() != at::kStrided) {
    return at::stack(samples);
  }
  std::vector<int64_t> sizes = first.sizes().vec();
  sizes.insert(sizes.begin(), static_cast<int64_t>(samples.size()));
  at::Tensor out = context.empty(sizes, first.scalar_type());
  const size_t row_bytes = first.nbytes();
  auto* to = static_cast<char*>(out.data_ptr());
  for (size_t i = 0; i < samples.size(); ++i, to += row_bytes) {
    // Lazily conjugated or negated tensors hold other bytes than they show.
    if (samples[i].is_contiguous() && !samples[i].is_conj() && !samples[i].is_neg()) {
      if (row_bytes > 0) {
        std::memcpy(to, samples[i].data_ptr(), row_bytes);
      }
    } else {
      out.select(0, static_cast<int64_t>(i)).copy_(samples[i]);
    }
  }
  return out;
}

}  // namespace argosy::data
