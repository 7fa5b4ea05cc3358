#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace argosy::launch {

/// Addresses of this machine's interfaces that are up, the loopback's last.
[[nodiscard]] std::vector<std::string> local_addresses();

/// The addresses of `host`, a name or an address, IPv4 first.
/// Errors: ConfigError naming the host.
[[nodiscard]] std::vector<std::string> resolve_host(const std::string& host);

/// Is one of the addresses of `host` ours?
[[nodiscard]] bool is_this_node(const std::string& host);

/// The address that packets to `host` leave this machine with. Sends nothing.
/// Errors: ConfigError where no route leads there.
[[nodiscard]] std::string source_address(const std::string& host);

[[nodiscard]] bool is_loopback(const std::string& address);

[[nodiscard]] std::string host_name();

}  // namespace argosy::launch
