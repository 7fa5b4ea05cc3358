#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/doctor/finding.h"

namespace argosy::doctor {

/// System, cores, memory, limits, shared memory, temporary files, supervision, clock, GPUs.
[[nodiscard]] std::vector<Finding> host_findings();

/// Bytes of "MemAvailable:   123 kB" in the text of /proc/meminfo; nullopt: no such line.
[[nodiscard]] std::optional<int64_t> meminfo(const std::string& text, const std::string& name);

/// The least memory that the cgroups named in `membership` (the text of /proc/self/cgroup, version
/// 2) and their parents grant, by the files under `mount`; nullopt: no limit.
[[nodiscard]] std::optional<int64_t> cgroup_memory_limit(const std::string& membership,
                                                         const std::string& mount);

}  // namespace argosy::doctor
