#pragma once

#include <functional>
#include <string>

#include "argosy/comm/group.h"

namespace argosy::checkpoint {

/// Who does the work of together().
enum class Who { kAll, kFirst };

/// Runs `work` on the ranks that `who` names and returns on all of them when it is done. What fails
/// on one rank is an error of all, so that nobody waits for a rank that has given up.
/// Collective over `group`; without a group, or in a group of one, exceptions pass unchanged.
/// Errors: CheckpointError `[where]` with `path` and the words of the first rank that failed.
void together(const comm::Group& group,
              const char* where,
              const std::string& path,
              const std::function<void()>& work,
              Who who = Who::kAll);

}  // namespace argosy::checkpoint
