#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

// Internal to the room: which address of this host the other ranks shall use.
namespace argosy::transport {

/// Equal on two ranks exactly when they reach each other over loopback: same boot of the same
/// kernel and same network namespace (containers share the first, not the second).
[[nodiscard]] std::string loopback_id();

/// The host in what a store says of itself: "node1" of "grpc://node1:29400#run/1a:0/world/". Empty
/// for a folder.
[[nodiscard]] std::string host_of(std::string_view store);

/// The address of this host from which the kernel would send to `host`. Empty when there is none,
/// or when it is loopback: `host` is this one. IPv4.
[[nodiscard]] std::string source_address(const std::string& host);

/// What a rank tells the others of its host.
struct HostCard {
  std::string loopback{};  ///< its loopback_id()
  std::string address{};   ///< its source_address() towards the store; empty where that is local
};

/// Where this rank listens: loopback when all share a host; else the address towards the store;
/// else, on the store's own host, the one towards a rank elsewhere, found by `route`
/// (source_address()); else the first address that is not loopback. Empty when there is none.
[[nodiscard]] std::string choose_address(
    const HostCard& mine,
    const std::vector<HostCard>& others,
    const std::function<std::string(const std::string&)>& route = source_address);

}  // namespace argosy::transport
