#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "argosy/rendezvous/store.h"
#include "argosy/transport/transport.h"

namespace argosy::transport {

struct HierarchicalOptions {
  /// The number of the host of each rank. Ranks with equal numbers share memory.
  std::vector<int> hosts{};
  std::string group{};                       ///< name of the group, for messages
  std::vector<int> world_ranks{};            ///< see PeerWatchOptions
  std::shared_ptr<rendezvous::Store> job{};  ///< see PeerWatchOptions
  std::vector<int> job_ranks{};              ///< see PeerWatchOptions
  std::chrono::milliseconds timeout = std::chrono::seconds(60);  ///< for the ranks to connect
  /// How long a rank looks for the culprit when an operation fails.
  std::chrono::milliseconds patience = std::chrono::seconds(1);
};

/// Returns a transport that uses shared memory inside each host and Gloo between hosts. For an
/// all_reduce each host sends at most 2 (hosts - 1) / hosts times the data, however many ranks it
/// has. As many of its ranks send a share of that as the smallest host has ranks.
///
/// Reductions, broadcast and barrier go this way. All other operations and messages go over Gloo
/// between all ranks.
/// The ranks of a host add what are siblings in the tree of sums (see LeafDeal) before anything
/// leaves it, so the bits are those of every other transport. A host whose leaves are m nodes of
/// the tree sends up to m times the data where it does not add; the shares are cut so that the host
/// that sends most sends as little as can be. 16-bit floats are summed in f32 from the first step
/// to the last and rounded once.
///
/// Collective: returns when all ranks are connected. Errors: as make_shm() and make_gloo().
[[nodiscard]] std::unique_ptr<Transport> make_hierarchical(std::shared_ptr<rendezvous::Store> store,
                                                           int rank,
                                                           int size,
                                                           const HierarchicalOptions& options);

}  // namespace argosy::transport
