#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/store.h"
#include "argosy/rendezvous/tls.h"

namespace argosy::rendezvous {

/// Returns a client of the store at host:port. Waits for the server until the deadline.
/// Errors: RendezvousError naming host, port and what was tried when the server cannot be reached;
/// RefusedError when it refuses the token, certificates do not fit, or only one side uses TLS.
[[nodiscard]] std::shared_ptr<Store> connect_store(const std::string& host,
                                                   uint16_t port,
                                                   const std::string& token,
                                                   const Deadline& deadline,
                                                   const Tls& tls = {});

}  // namespace argosy::rendezvous
