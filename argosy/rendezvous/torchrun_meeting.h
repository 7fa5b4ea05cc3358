#pragma once

#include <memory>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/join.h"

namespace argosy::rendezvous {

/// The store of a job that the real torchrun has started, whose own store listens at `place`: rank
/// 0 hosts ours on a port that the system chooses and leaves its address and a secret in
/// torchrun's, where the others read them. `number` counts the jobs that this process took part in
/// there, equal on all ranks. Errors: RendezvousError (what listens there is no TCPStore; the store
/// is unreachable); TimeoutError whose peers() name rank 0, which did not come.
[[nodiscard]] std::shared_ptr<Store> meet_through_torchrun(const MeetingPlace& place,
                                                           int number,
                                                           const Deadline& deadline);

}  // namespace argosy::rendezvous
