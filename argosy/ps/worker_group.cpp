#include "argosy/ps/worker_group.h"

#include <fmt/format.h>

#include <utility>

#include "argosy/base/deadline.h"
#include "argosy/comm/init.h"
#include "argosy/rendezvous/join.h"

namespace argosy::ps {

comm::Group group_of_workers(const std::shared_ptr<rendezvous::Store>& job,
                             const Roles& roles,
                             std::chrono::milliseconds timeout) {
  const Deadline deadline = Deadline::after(timeout);
  rendezvous::Joined joined{.store = rendezvous::prefix_store(job, "ps/group"),
                            .rank = roles.index,
                            .world_size = roles.workers};
  joined.presence = joined.store->announce(fmt::format("rank/{}", roles.index), deadline);
  return comm::form(
      {.name = "workers"}, std::move(joined), comm::settle({.timeout = timeout}), deadline);
}

}  // namespace argosy::ps
