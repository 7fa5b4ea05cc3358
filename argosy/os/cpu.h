#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::os {

/// What of this machine's processors this process may use.
struct Cpu {
  /// Hardware threads: those of the affinity mask, or the cgroup's CPU quota rounded up if smaller.
  int cores = 1;
  /// Distinct physical cores among the affinity mask.
  int physical_cores = 1;
  bool avx512 = false;  ///< AVX-512F, in the CPU and enabled by the system
};

/// Reads it now; the affinity mask and the quota of a running process may be changed from outside.
[[nodiscard]] Cpu usable_cpu();

/// Numbers of a kernel list such as "0-3,8,10-11". nullopt: malformed.
[[nodiscard]] std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

/// CPUs' worth of time that the cgroups named in `membership` (the text of /proc/self/cgroup) and
/// their parents grant, by the files under `mount` (/sys/fs/cgroup); versions 1 and 2.
/// nullopt: no limit.
[[nodiscard]] std::optional<double> cgroup_cpu_limit(const std::string& membership,
                                                     const std::string& mount);

}  // namespace argosy::os
