#pragma once

#include <cstdint>
#include <memory>

#include "argosy/rendezvous/store_server.h"

namespace argosy::rendezvous {

/// The store of a job in the rank that hosts it.
struct HostedStore {
  std::shared_ptr<Store> store{};
  uint16_t port = 0;
};

/// The server lives as long as the returned store; letting go of that waits, five seconds at most,
/// until the members that announced themselves from elsewhere have left.
/// Errors: RendezvousError naming host and port when it cannot listen there.
[[nodiscard]] HostedStore host_store(const StoreServerOptions& options);

}  // namespace argosy::rendezvous
