#pragma once

#include <memory>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/environment.h"
#include "argosy/rendezvous/meeting_place.h"
#include "argosy/rendezvous/store.h"
#include "argosy/rendezvous/wait_for_ranks.h"

namespace argosy::rendezvous {

/// Opens the store at `place`. Rank 0 hosts it where nobody else does.
///
/// With a run id, all keys and members stand below "run/<id>/", so a restarted job sees nothing of
/// the run before. A program may leave its job and join again: at a launcher's store each call uses
/// a level of its own ("run/<id>/0", "…/1"); elsewhere the process waits until all ranks have left
/// the former job.
///
/// Lifetime: destroy presences before the store. In a rank that hosts, the server lives as long as
/// the returned store, whose destructor waits at most five seconds until the members of other
/// processes have left. The last rank that leaves a file:// store removes its folder, unless a rank
/// was lost.
/// Errors: RendezvousError (cannot listen, unreachable, token refused); ConfigError; TimeoutError
/// naming the ranks that are still in the former job; UsageError when this process is.
[[nodiscard]] std::shared_ptr<Store> open_store(const MeetingPlace& place,
                                                const Deadline& deadline);

/// A process that has met all others.
struct Joined {
  std::shared_ptr<Store> store{};
  int rank = 0;
  int world_size = 1;
  std::unique_ptr<Presence> presence{};  ///< member "rank/<n>"; destroy it before the store
  JobEnvironment environment{};
};

/// Calls environment_for(), resolve(), open_store() and wait_for_ranks().
[[nodiscard]] Joined join(const JoinOptions& options, const Deadline& deadline);

}  // namespace argosy::rendezvous
