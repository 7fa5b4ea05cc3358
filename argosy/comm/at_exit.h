#pragma once

#include <memory>

#include "argosy/comm/group_state.h"

// Internal to the room.
namespace argosy::comm {

/// Closes `state` when the process ends, if it still exists then.
void close_at_exit(const std::shared_ptr<GroupState>& state);
/// Closes all groups of this process, the newest first. What they run gets until the deadline. A
/// group of which this thread runs an operation is closed at the end of the process.
void close_all(const Deadline& deadline);
/// Lets all groups be closed before a library is taken down that was loaded until now: what ends
/// last at the end of a process is what began first.
void close_before_libraries_end();

}  // namespace argosy::comm
