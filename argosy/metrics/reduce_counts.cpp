#include "argosy/metrics/reduce_counts.h"

#include <ATen/ops/from_blob.h>

#include "argosy/comm/collectives.h"

namespace argosy::metrics {

std::vector<int64_t> all_reduced(std::vector<int64_t> counts, const comm::Group& group) {
  if (group.valid() && group.size() > 1) {
    comm::all_reduce(at::from_blob(counts.data(), {static_cast<int64_t>(counts.size())}, at::kLong),
                     group);
  }
  return counts;
}

}  // namespace argosy::metrics
