#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argosy/base/result.h"

// Which addresses this host has, and which one others should use.
namespace argosy::os {

/// True if `host` is a literal address and not a name.
[[nodiscard]] bool is_address(const std::string& host);
[[nodiscard]] bool is_ipv4(const std::string& address);
[[nodiscard]] bool is_loopback(const std::string& address);

/// Returns the addresses of this host's interfaces that are up. Those of the loopback come last.
[[nodiscard]] std::vector<std::string> local_addresses();

/// Returns an address of the interface `name` ("eth0"), IPv4 if there is one. Fails when the
/// interface has no address or does not exist; the failure then names those that exist.
[[nodiscard]] Result<std::string> interface_address(const std::string& name);

/// Returns the addresses of `host` (a name or an address), IPv4 first. Fails when there are none.
[[nodiscard]] Result<std::vector<std::string>> resolve_host(const std::string& host);

/// True if one of the addresses of `host` is ours. Fails when it has none.
[[nodiscard]] Result<bool> is_this_host(const std::string& host);

/// Returns the address from which packets to `host` leave this host, IPv4 if there is one. Sends
/// nothing. Fails when no route leads there.
[[nodiscard]] Result<std::string> source_address(const std::string& host);

/// Return the address to which a socket is bound, and the address at its other end. "" if there is
/// none.
[[nodiscard]] std::string own_address_of(int socket);
[[nodiscard]] std::string peer_address_of(int socket);

[[nodiscard]] std::string host_name();
/// Returns a word for this boot of this machine, which its containers share. "" where the kernel
/// tells none.
[[nodiscard]] std::string boot_id();

/// Returns "10.0.0.1:29500" or, for IPv6, "[fd00::1]:29500".
[[nodiscard]] std::string host_port(const std::string& host, uint16_t port);

}  // namespace argosy::os
