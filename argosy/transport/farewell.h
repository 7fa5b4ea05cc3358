#pragma once

#include <optional>
#include <string>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/store.h"

namespace argosy::transport {

/// Why a rank leaves a group: another of its groups broke.
struct Farewell {
  std::vector<int> culprits{};  ///< who broke that one, as ranks of this group; not all are in it
  std::string story{};
};

/// Tells the members of a group why `rank` is about to leave it, so that those that still need it
/// do not take it for the cause. `store`: the group's. Errors: as Store::set().
void tell_farewell(rendezvous::Store& store,
                   int rank,
                   const Farewell& farewell,
                   const Deadline& deadline);

/// Returns what `rank` has told; nullopt: nothing. Errors: as Store::get().
[[nodiscard]] std::optional<Farewell> farewell_of(rendezvous::Store& store,
                                                  int rank,
                                                  const Deadline& deadline);

}  // namespace argosy::transport
