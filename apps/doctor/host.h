#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/doctor/finding.h"

namespace argosy::doctor {

/// Checks system, cores, memory, limits, shared memory, temporary files, supervision and clock.
[[nodiscard]] std::vector<Finding> host_findings();

/// Returns the bytes of a line like "MemAvailable:   123 kB" in the text of /proc/meminfo. nullopt:
/// there is no such line.
[[nodiscard]] std::optional<int64_t> meminfo(const std::string& text, const std::string& name);

/// Returns the least memory that the cgroups in `membership` (the text of /proc/self/cgroup,
/// version 2) and their parents grant, by their files under `mount`. nullopt: there is no limit.
[[nodiscard]] std::optional<int64_t> cgroup_memory_limit(const std::string& membership,
                                                         const std::string& mount);

}  // namespace argosy::doctor
