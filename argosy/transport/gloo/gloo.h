#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "argosy/rendezvous/store.h"
#include "argosy/transport/transport.h"

namespace argosy::transport {

struct GlooOptions {
  std::string group{};                       ///< name of the group, for messages
  std::vector<int> world_ranks{};            ///< see PeerWatchOptions
  std::shared_ptr<rendezvous::Store> job{};  ///< see PeerWatchOptions
  std::vector<int> job_ranks{};              ///< see PeerWatchOptions
  /// Network interface to listen on ("eth0"). Empty: ARGOSY_IFNAME, then GLOO_SOCKET_IFNAME.
  std::string interface {};
  /// Address or name of this host to listen on, when no interface is given. Empty: loopback when
  /// all ranks share a host, else the address from which this host reaches the store.
  std::string host{};
  std::chrono::milliseconds timeout = std::chrono::seconds(60);  ///< for the ranks to connect
  /// How long a rank looks for the culprit when an operation fails.
  std::chrono::milliseconds patience = std::chrono::seconds(1);
};

/// Returns a transport over TCP, by Gloo. There is one connection between each two ranks, and one
/// thread that serves all of them. In `store` the ranks meet, and learn later who died. Each
/// transport needs a prefix of its own there.
///
/// Collective: returns when all ranks are connected.
/// Errors: TimeoutError naming the ranks that did not come; CommError naming one that died;
/// ConfigError when the interface or host is not there.
[[nodiscard]] std::unique_ptr<Transport> make_gloo(std::shared_ptr<rendezvous::Store> store,
                                                   int rank,
                                                   int size,
                                                   const GlooOptions& options = {});

}  // namespace argosy::transport
