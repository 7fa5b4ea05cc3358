#pragma once

#include <cstdint>
#include <vector>

#include "argosy/comm/group.h"

namespace argosy::metrics {

/// Element-wise sums of the ranks' counts, on every rank. An empty group: `counts` themselves.
/// Collective over `group`.
[[nodiscard]] std::vector<int64_t> all_reduced(std::vector<int64_t> counts,
                                               const comm::Group& group);

}  // namespace argosy::metrics
