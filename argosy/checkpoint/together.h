#pragma once

#include <functional>
#include <string>

#include "argosy/comm/group.h"

namespace argosy::checkpoint {

/// Which ranks do the work of together().
enum class Who { kAll, kFirst };

/// Runs `work` on the ranks that `who` names, and returns on all ranks when it is done. A failure
/// on one rank is an error on all, so nobody waits for a rank that gave up.
/// Collective over `group`. Without a group, or in a group of one, exceptions pass unchanged.
/// Errors: CheckpointError `[where]` with `path` and the message of the first rank that failed.
void together(const comm::Group& group,
              const char* where,
              const std::string& path,
              const std::function<void()>& work,
              Who who = Who::kAll);

}  // namespace argosy::checkpoint
