#pragma once

#include <map>
#include <string>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/store.h"

namespace argosy::rendezvous {

/// A launcher leaves word in the store that one of its ranks is stopped, for the other ranks: to
/// them a process that stands still looks like one that has died. `store` is the whole store,
/// `run_id` the start of the ranks, `how` for people: "stopped by SIGSTOP".
///
/// Returns the key, which is to be removed when the rank goes on; "": it has not joined.
[[nodiscard]] std::string tell_stopped(Store& store,
                                       const std::string& run_id,
                                       int rank,
                                       const std::string& how,
                                       const Deadline& deadline);

/// Which ranks are stopped at this moment, and how, by the word of their launchers. `job`: the
/// store as join() gives it.
[[nodiscard]] std::map<int, std::string> stopped_ranks(Store& job, const Deadline& deadline);

}  // namespace argosy::rendezvous
