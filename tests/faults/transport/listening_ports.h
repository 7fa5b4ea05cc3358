#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace argosy::test {

/// The TCP ports on IPv4 at which the process `pid` listens now, as a port scan would find them:
/// from /proc/net/tcp and the descriptors of the process.
[[nodiscard]] std::vector<uint16_t> listening_ports(pid_t pid);

}  // namespace argosy::test
