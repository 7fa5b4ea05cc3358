#pragma once

#include <memory>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/meeting_place.h"
#include "argosy/rendezvous/store.h"

namespace argosy::rendezvous {

/// Returns the store of a job that the real torchrun has started. torchrun's own store listens at
/// `place`. Rank 0 hosts ours and invites the others there. `number` counts the jobs that this
/// process took part in there; it is equal on all ranks. Errors: RendezvousError when no TCPStore
/// listens there or our store cannot be reached; TimeoutError whose peers() name rank 0 when it did
/// not come.
[[nodiscard]] std::shared_ptr<Store> meet_through_torchrun(const MeetingPlace& place,
                                                           int number,
                                                           const Deadline& deadline);

}  // namespace argosy::rendezvous
