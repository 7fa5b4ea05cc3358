#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "argosy/comm/group.h"

namespace argosy::checkpoint {

/// Returns the checkpoint at `from`, or the newest whole one in that folder; nullopt if there is
/// none. Ranks share the reading: each checks a part of the bytes. Rank 0 logs what was passed
/// over. `prefix` as for find_newest(). A checkpoint at `from` is not checked.
/// Collective over `group`; without one, or in a group of one, this process checks all.
/// Errors: CheckpointError, on all ranks, if the folder cannot be read.
[[nodiscard]] std::optional<std::string> newest_together(const std::string& from,
                                                         std::string_view prefix,
                                                         const comm::Group& group);

}  // namespace argosy::checkpoint
