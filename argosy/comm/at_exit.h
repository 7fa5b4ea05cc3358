#pragma once

#include <memory>

#include "argosy/comm/group_state.h"

// Internal to the room.
namespace argosy::comm {

/// Closes `state` when the process ends, if it still exists then.
void close_at_exit(const std::shared_ptr<GroupState>& state);

}  // namespace argosy::comm
