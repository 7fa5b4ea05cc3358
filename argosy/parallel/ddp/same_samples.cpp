#include "argosy/parallel/ddp/same_samples.h"

#include <algorithm>
#include <limits>

#include <ATen/ops/any.h>
#include <ATen/ops/full.h>
#include <c10/util/hash.h>

#include "argosy/comm/collectives.h"
#include "argosy/parallel/ddp/elements.h"

namespace argosy::parallel::ddp {

SameSamples::SameSamples()
    : bounds_(at::full({2}, std::numeric_limits<int64_t>::min(), at::kLong)) {}

void SameSamples::add(const at::Tensor& flat) {
  digest_ = c10::hash_combine(digest_, bits_of(flat));
  any_ = any_ || (flat.is_cpu() && flat.any().item<bool>());
}

void SameSamples::end_leaf() {
  // Gradients that are all zero say nothing: let them differ from all others.
  const int64_t digest = any_ ? static_cast<int64_t>(digest_) : 0;
  auto* const bounds = bounds_.data_ptr<int64_t>();
  bounds[0] = std::max(bounds[0], digest);
  bounds[1] = std::max(bounds[1], ~digest);
  digest_ = 0;
  any_ = false;
}

comm::Work SameSamples::compare(const comm::Group& group, std::chrono::milliseconds timeout) {
  return comm::all_reduce_async(bounds_, group, {.op = comm::ReduceOp::kMax, .timeout = timeout});
}

/// False as well if nothing was compared: ranks had uneven inputs, or one had all.
bool SameSamples::all_same() const {
  const auto* const bounds = bounds_.data_ptr<int64_t>();
  return bounds[0] == ~bounds[1] && bounds[0] != 0;
}

}  // namespace argosy::parallel::ddp
