#pragma once

#include <memory>
#include <string>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/meeting_place.h"
#include "argosy/rendezvous/store.h"

namespace argosy::rendezvous {

/// Registers this process as `rank`, and waits until all `world_size` ranks did the same. Returns
/// its presence as member "rank/<n>": keep it for the life of the job.
///
/// Blocks: until all ranks are there. Every 10 s a warning says which are missing.
/// Errors: TimeoutError whose peers() and text list the missing ranks; RendezvousError when a rank
/// is taken (it names host and pid of both), when ranks disagree about world_size or run id, when a
/// rank died or left before all had come, and when the store belongs to a former run.
[[nodiscard]] std::unique_ptr<Presence> wait_for_ranks(Store& store,
                                                       int rank,
                                                       int world_size,
                                                       const Deadline& deadline,
                                                       const std::string& run_id = "",
                                                       DeadRank dead = DeadRank::kStaysDead);

}  // namespace argosy::rendezvous
