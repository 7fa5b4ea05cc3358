#include "argosy/parallel/ddp/pass_counter.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <c10/util/hash.h>

namespace argosy::parallel::ddp {
namespace {

/// Other than before if the parameter has changed: a digest of some of its elements, for
/// torch::optim leaves its version alone. Of a device, which would have to be waited for, the
/// version.
uint64_t sample_of(const at::Tensor& parameter) {
  constexpr int64_t kElements = 4;
  if (!parameter.device().is_cpu() || !parameter.is_non_overlapping_and_dense()) {
    return static_cast<uint64_t>(parameter._version());
  }
  if (parameter.numel() == 0) {
    return 0;
  }
  const auto* bytes = static_cast<const std::byte*>(parameter.data_ptr());
  const auto size = std::min(sizeof(uint64_t), static_cast<size_t>(parameter.element_size()));
  uint64_t digest = 0;
  for (int64_t i = 0; i < kElements; ++i) {
    uint64_t element = 0;
    const int64_t at = parameter.numel() * i / kElements;  // dense, in whatever order
    std::memcpy(&element, bytes + at * static_cast<int64_t>(parameter.element_size()), size);
    digest = c10::hash_combine(digest, element);
  }
  return digest;
}

}  // namespace

uint64_t PassCounter::sample_of(const ParameterTable& table) {
  uint64_t sample = 0;
  for (const at::Tensor& parameter : table.tensors()) {
    sample = c10::hash_combine(sample, ddp::sample_of(parameter));
  }
  return sample;
}

transport::TrainingPlace PassCounter::next(const ParameterTable& table) {
  const uint64_t sample = sample_of(table);
  uint64_t which_frozen = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    which_frozen =
        table.tensors()[i].requires_grad() ? which_frozen : c10::hash_combine(which_frozen, i + 1);
  }
  if (place_.update == 0 || sample != sample_) {
    place_ = {.update = place_.update + 1};
  }
  ++place_.pass;
  place_.frozen = static_cast<uint32_t>(which_frozen ^ which_frozen >> 32U);
  sample_ = sample;
  return place_;
}

}  // namespace argosy::parallel::ddp
