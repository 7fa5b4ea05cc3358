#pragma once

#include <string>

#include "argosy/transport/gloo/mesh.h"

// Internal to the room: which address of this host the other ranks shall use.
namespace argosy::transport {

/// Equal on two ranks exactly when they reach each other over loopback: same boot of the same
/// kernel and same network namespace (containers share the first, not the second).
[[nodiscard]] std::string loopback_id();

/// The address of this host that leads to `endpoint` ("grpc://10.0.0.1:29400", "node1:29400"), or,
/// where that is this host itself or not an address, the first one that is not loopback.
/// Empty when there is none.
[[nodiscard]] std::string address_towards(const std::string& endpoint);

}  // namespace argosy::transport
