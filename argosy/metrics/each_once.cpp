#include "argosy/metrics/each_once.h"

#include <chrono>

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/comm/collectives.h"

namespace argosy::metrics {

void wait_for_shares(int64_t seen, const comm::Group& group) {
  if (group.valid() && group.size() > 1) {
    using Timeout = std::chrono::milliseconds;
    comm::barrier(group, {.timeout = seen == 0 ? Timeout(comm::kWhileOthersCompute) : Timeout(0)});
  }
}

void check_each_once(std::string_view where, int64_t seen, int64_t size, const comm::Group& group) {
  if (!group.valid() || group.size() == 1) {
    return;
  }
  const at::Tensor counts = at::tensor({seen, size < 0 ? int64_t{0} : size}, at::kLong);
  comm::all_reduce(counts, group);
  const int64_t all = counts[0].item<int64_t>();
  const int64_t whole = counts[1].item<int64_t>() / group.size();
  ARGOSY_CHECK(whole == 0 || all <= whole || all % whole == 0,
               where,
               "the ranks evaluated {} samples of a data set of {}: the loader's sampler repeats "
               "samples, so that all ranks get equally many, and these count twice. Give the "
               "loader fleet::evaluation_sampler(…).",
               all,
               whole);
}

}  // namespace argosy::metrics
