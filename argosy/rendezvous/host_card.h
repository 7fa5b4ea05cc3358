#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

// Which processes share a host, and the address of this host that the others use.
namespace argosy::rendezvous {

/// Returns a text that is equal on two ranks exactly when they reach each other over loopback: they
/// have the same boot of the same kernel and the same network namespace. Containers share the
/// first, but not the second.
[[nodiscard]] std::string loopback_id();

/// Returns a text that is equal on two processes exactly when they can share memory: they have the
/// same boot of the same kernel, the same network namespace and the same user.
[[nodiscard]] std::string neighbourhood_id();

/// Returns the host in a store's description: "node1" of "grpc://node1:29400#run/1a:0/world/".
/// Empty for a folder.
[[nodiscard]] std::string host_of(std::string_view store);

/// Returns the IPv4 address of this host from which the kernel would send to `host`. Empty when
/// there is none, or when `host` is this one.
[[nodiscard]] std::string source_address(const std::string& host);

/// What a rank tells the others about its host.
struct HostCard {
  std::string loopback{};  ///< its loopback_id()
  std::string address{};   ///< its source_address() towards the store; empty where that is local
};

/// Returns where this rank listens: on loopback when all ranks share a host; else on the address
/// towards the store; else, on the store's own host, on the one towards a rank elsewhere, which
/// `route` finds; else on the first address that is not loopback. Empty when there is none.
[[nodiscard]] std::string choose_address(
    const HostCard& mine,
    const std::vector<HostCard>& others,
    const std::function<std::string(const std::string&)>& route = source_address);

}  // namespace argosy::rendezvous
