#include "argosy/parallel/ddp/pass_counter.h"

#include <cstddef>

#include <c10/util/hash.h>

#include "argosy/parallel/ddp/elements.h"

namespace argosy::parallel::ddp {
namespace {

/// Other than before if the parameter has changed: a digest of some of its elements, for
/// torch::optim leaves its version alone. Of a device, which would have to be waited for, the
/// version.
uint64_t sample_of(const at::Tensor& parameter) {
  return bits_of_samples(parameter).value_or(static_cast<uint64_t>(parameter._version()));
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
  place_.layout = table.layout();
  sample_ = sample;
  return place_;
}

}  // namespace argosy::parallel::ddp
