#pragma once

#include "argosy/base/deadline.h"
#include "argosy/comm/operation.h"
#include "argosy/transport/rank_names.h"
#include "argosy/transport/transport.h"

namespace argosy::comm {

/// Compares what all ranks are about to do, by Operation::info.signature, seq and place.
///
/// Collective. Errors: CommError on every rank when they differ, naming who and how:
/// "rank 2 called all_reduce f32 [3, 4] sum, the others all_reduce f32 [4, 4] sum (seq 17)".
/// Cost: one all_gather of 256 bytes.
void compare_signatures(const Operation& operation,
                        const transport::RankNames& names,
                        transport::Transport& transport,
                        const Deadline& deadline);

}  // namespace argosy::comm
