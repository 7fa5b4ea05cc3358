#pragma once

#include <cstdint>
#include <string_view>

#include "argosy/comm/group.h"

namespace argosy::metrics {

/// Checks that an evaluation did not count some samples twice and others once, as it does with the
/// sampler of a training, which pads the data so that all ranks get equally many.
///
/// `seen`: samples that this rank has evaluated; `size`: of the data set, negative if unknown.
/// Collective over `group`; nothing is checked for a group that is not valid, or of one rank.
/// Errors: UsageError in the name of `where`, on all ranks.
void check_each_once(std::string_view where, int64_t seen, int64_t size, const comm::Group& group);

/// Returns when all ranks have evaluated their shares. One that had none, `seen` = 0, waits however
/// long the others compute (comm::kWhileOthersCompute): it may be a spare. Collective over `group`,
/// if that is valid.
void wait_for_shares(int64_t seen, const comm::Group& group);

}  // namespace argosy::metrics
