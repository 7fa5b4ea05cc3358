#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "argosy/rendezvous/store.h"
#include "argosy/transport/transport.h"

namespace argosy::transport {

enum class GlooAlgorithm {
  /// Sums in rank order 0, 1, … n-1: the same bits as shared memory and threads give, wherever the
  /// ranks are. Costs what the ring costs.
  kRankOrder,
  /// Gloo's own ring for all_reduce: the order of the sum differs from element to element and with
  /// the number of ranks, and 16-bit floats are rounded at every step. For comparison.
  kRing,
};

struct GlooOptions {
  std::string group{};                       ///< name of the group, for messages
  std::vector<int> world_ranks{};            ///< of the members, see PeerWatchOptions
  std::shared_ptr<rendezvous::Store> job{};  ///< where the ranks of the job are members; or none
  /// Network interface to listen on ("eth0"); empty: ARGOSY_IFNAME, then GLOO_SOCKET_IFNAME.
  std::string interface {};
  /// Address or name of this host to listen on, when no interface is given. Empty: loopback when
  /// all ranks share a host, else the address from which this host reaches the store.
  std::string host{};
  std::chrono::milliseconds timeout = std::chrono::seconds(60);  ///< for the ranks to connect
  /// How long to look for who is to blame when an operation fails.
  std::chrono::milliseconds patience = std::chrono::seconds(1);
  GlooAlgorithm algorithm = GlooAlgorithm::kRankOrder;
};

/// A transport over TCP, by Gloo: one connection between each two ranks, one thread that serves
/// them. `store` is where the ranks meet, and later learn who died; a prefix of its own for each
/// transport.
///
/// Collective: returns when all ranks are connected.
/// Errors: TimeoutError naming the ranks that did not come; CommError naming one that died;
/// ConfigError when the interface or host is not there.
[[nodiscard]] std::unique_ptr<Transport> make_gloo(std::shared_ptr<rendezvous::Store> store,
                                                   int rank,
                                                   int size,
                                                   const GlooOptions& options = {});

}  // namespace argosy::transport
