#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "argosy/rendezvous/store.h"
#include "argosy/transport/transport.h"

namespace argosy::transport {

struct HierarchicalOptions {
  /// For each rank of the group the number of its host: ranks with equal numbers share memory.
  std::vector<int> hosts{};
  std::string group{};                       ///< name of the group, for messages
  std::vector<int> world_ranks{};            ///< of the members, see PeerWatchOptions
  std::shared_ptr<rendezvous::Store> job{};  ///< where the ranks of the job are members; or none
  std::chrono::milliseconds timeout = std::chrono::seconds(60);  ///< for the ranks to connect
  /// How long to look for who is to blame when an operation fails.
  std::chrono::milliseconds patience = std::chrono::seconds(1);
};

/// Shared memory inside each host, Gloo between hosts: what every host sends for an all_reduce is
/// at most 2 (hosts - 1) / hosts times the data, however many ranks it has, and each of its ranks
/// sends a share of that (as many as the host with the fewest ranks has).
///
/// all_reduce, reduce, broadcast and barrier go this way; the other operations and messages go over
/// Gloo between all ranks. Order of sums: on each host in rank order, then over the hosts in the
/// order of their first ranks; the same bits on all ranks and in every run, but not those of other
/// transports. 16-bit floats are summed in f32 all the way and rounded once.
///
/// Collective: returns when all ranks are connected. Errors: as make_shm() and make_gloo().
[[nodiscard]] std::unique_ptr<Transport> make_hierarchical(std::shared_ptr<rendezvous::Store> store,
                                                           int rank,
                                                           int size,
                                                           const HierarchicalOptions& options);

}  // namespace argosy::transport
