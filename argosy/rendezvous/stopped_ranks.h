#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/store.h"

namespace argosy::rendezvous {

/// Tells the other ranks through the store that `rank` is stopped. Its launcher calls this: to the
/// other ranks, a process that stands still looks like one that has died. `store` is the whole
/// store, `run_id` names the start of the ranks, and `how` is for people: "stopped by SIGSTOP".
///
/// Returns the key, which the launcher removes when the rank continues; "" when the rank has not
/// joined.
[[nodiscard]] std::string tell_stopped(Store& store,
                                       const std::string& run_id,
                                       int rank,
                                       const std::string& how,
                                       const Deadline& deadline);

/// Returns the process that joined as `rank`, as its launcher sees it. nullopt: none has yet.
/// `store` and `run_id`: as for tell_stopped().
[[nodiscard]] std::optional<int64_t> process_of_rank(Store& store,
                                                     const std::string& run_id,
                                                     int rank,
                                                     const Deadline& deadline);

/// Returns the ranks that are stopped at this moment, and how, as their launchers say. `job`: the
/// store that join() returns.
[[nodiscard]] std::map<int, std::string> stopped_ranks(Store& job, const Deadline& deadline);

}  // namespace argosy::rendezvous
