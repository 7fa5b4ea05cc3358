#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argosy/base/result.h"

// Which addresses this host has, and which one others should use.
namespace argosy::os {

/// A literal address, not a name.
[[nodiscard]] bool is_address(const std::string& host);
[[nodiscard]] bool is_ipv4(const std::string& address);
[[nodiscard]] bool is_loopback(const std::string& address);

/// Addresses of this host's interfaces that are up, the loopback's last.
[[nodiscard]] std::vector<std::string> local_addresses();

/// The address of the interface `name` ("eth0"), IPv4 where it has one. Fails where there is no
/// such interface, naming those that there are, or it has none.
[[nodiscard]] Result<std::string> interface_address(const std::string& name);

/// The addresses of `host`, a name or an address, IPv4 first. Fails where it has none.
[[nodiscard]] Result<std::vector<std::string>> resolve_host(const std::string& host);

/// Is one of the addresses of `host` ours? Fails where it has none.
[[nodiscard]] Result<bool> is_this_host(const std::string& host);

/// The address that packets to `host` leave this host with, IPv4 where there is one. Sends nothing.
/// Fails where no route leads there.
[[nodiscard]] Result<std::string> source_address(const std::string& host);

/// The address to which a socket is bound, and that at its other end; empty where it has none.
[[nodiscard]] std::string own_address_of(int socket);
[[nodiscard]] std::string peer_address_of(int socket);

[[nodiscard]] std::string host_name();

/// "10.0.0.1:29500", "[fd00::1]:29500".
[[nodiscard]] std::string host_port(const std::string& host, uint16_t port);

}  // namespace argosy::os
