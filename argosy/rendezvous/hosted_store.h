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

/// Starts a store in this process.
///
/// Lifetime: the server lives as long as the returned store. The destructor waits, five seconds at
/// most, until the members of other processes have left.
/// Errors: RendezvousError naming host and port when it cannot listen there.
[[nodiscard]] HostedStore host_store(const StoreServerOptions& options);

}  // namespace argosy::rendezvous
