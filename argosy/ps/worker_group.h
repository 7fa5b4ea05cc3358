#pragma once

#include <chrono>
#include <memory>

#include "argosy/comm/group.h"
#include "argosy/ps/roles.h"
#include "argosy/rendezvous/store.h"

namespace argosy::ps {

/// Makes a group of collectives of the workers of a job, for they have met already: over shared
/// memory inside of a host, and Gloo between hosts. Collective over the workers. `job`: the store
/// where servers and workers have met. Lifetime: destroy the group before that store.
/// Errors: those of comm::form().
[[nodiscard]] comm::Group group_of_workers(const std::shared_ptr<rendezvous::Store>& job,
                                           const Roles& roles,
                                           std::chrono::milliseconds timeout);

}  // namespace argosy::ps
