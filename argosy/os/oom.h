#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace argosy::os {

/// How many processes the kernel's out-of-memory killer has ended since the machine started, by the
/// kernel's own count; nullopt: it does not say (before Linux 4.13). In a container it is the whole
/// machine's. `vmstat`: for tests.
[[nodiscard]] std::optional<int64_t> oom_kills(const std::string& vmstat = "/proc/vmstat");

}  // namespace argosy::os
