#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace argosy::os {

/// Returns how many processes the kernel's out-of-memory killer has ended since the machine
/// started. In a container the count is that of the whole machine. nullopt: the kernel does not
/// count them (before Linux 4.13). `vmstat` is for tests.
[[nodiscard]] std::optional<int64_t> oom_kills(const std::string& vmstat = "/proc/vmstat");

}  // namespace argosy::os
