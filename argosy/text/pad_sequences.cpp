#include "argosy/text/pad_sequences.h"

#include <algorithm>

#include <torch/types.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"

namespace argosy::text {
namespace {

constexpr const char* kPads = "text.PadSequences";

int64_t length_of(const PadSequences::Sample& sample, int64_t index) {
  const auto fits = [](const at::Tensor& tensor) {
    return tensor.defined() && tensor.device().is_cpu() && tensor.dim() == 1 &&
           tensor.scalar_type() == at::kLong;
  };
  const auto& [inputs, targets] = sample;
  if (!fits(inputs) || !fits(targets) || inputs.size(0) != targets.size(0)) {
    throw DataError(kPads,
                    fmt::format("expected inputs and targets [length] Long of one length on the "
                                "CPU, got {} and {}",
                                shape_and_type(inputs),
                                shape_and_type(targets)),
                    {.path = "", .index = index});
  }
  return inputs.size(0);
}

void fill_row(const at::Tensor& from, int64_t padding, int64_t length, int64_t* to) {
  const at::Tensor dense = from.contiguous();
  const auto* ids = dense.data_ptr<int64_t>();
  std::fill(std::copy(ids, ids + dense.size(0), to), to + length, padding);
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> PadSequences::operator()(
    const std::vector<Sample>& samples, const data::BatchContext& context) const {
  ARGOSY_CHECK(multiple_of > 0, kPads, "multiple_of must be positive, got {}", multiple_of);
  int64_t length = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const int64_t index = i < context.indices.size() ? context.indices[i] : -1;
    length = std::max(length, length_of(samples[i], index));
  }
  length = (length + multiple_of - 1) / multiple_of * multiple_of;
  const auto rows = static_cast<int64_t>(samples.size());
  at::Tensor inputs = context.empty({rows, length}, at::kLong);
  at::Tensor targets = context.empty({rows, length}, at::kLong);
  for (int64_t row = 0; row < rows; ++row) {
    const auto& [from_inputs, from_targets] = samples[static_cast<size_t>(row)];
    fill_row(from_inputs, pad_id, length, inputs.data_ptr<int64_t>() + row * length);
    fill_row(from_targets, ignore_index, length, targets.data_ptr<int64_t>() + row * length);
  }
  return {std::move(inputs), std::move(targets)};
}

}  // namespace argosy::text
