#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "argosy/rendezvous/store.h"

// Internal to the room.
namespace argosy::transport {

/// The ranks of a group at one moment, as the stores know them.
struct Muster {
  std::vector<rendezvous::Departure> left_job{};
  std::vector<rendezvous::Member> present{};
  std::vector<rendezvous::Departure> left{};  ///< the group; none of them is present

  /// Asks the group's store and the job's. `job` may be null.
  ///
  /// Returns nullopt when a store is slow. A slow store is not dead; the caller looks again.
  /// Errors: RendezvousError when a store is gone.
  [[nodiscard]] static std::optional<Muster> take(rendezvous::Store& group,
                                                  rendezvous::Store* job,
                                                  std::chrono::milliseconds patience);

  /// Returns the last note of each rank that came to the group.
  [[nodiscard]] std::map<int, std::string> notes() const;
  /// Returns the ranks that left the group.
  [[nodiscard]] std::set<int> leavers() const;
};

}  // namespace argosy::transport
