#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::os {

/// The processors of this machine that this process may use.
struct Cpu {
  /// Hardware threads: those of the affinity mask, or the cgroup's CPU quota rounded up if smaller.
  int cores = 1;
  /// Distinct physical cores among the affinity mask.
  int physical_cores = 1;
  bool avx2 = false;    ///< AVX2 with FMA, in the CPU and enabled by the system
  bool avx512 = false;  ///< AVX-512 F, BW, DQ and VL, likewise
};

/// Reads the present state. Others may change the affinity mask and the quota of a running process.
[[nodiscard]] Cpu usable_cpu();

/// Whether the CPU has instructions that Linux calls so ("amx_bf16") and the system has enabled
/// them.
[[nodiscard]] bool has_cpu_flag(std::string_view name);

/// Returns the numbers in a kernel list such as "0-3,8,10-11". nullopt: the list is malformed.
[[nodiscard]] std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

/// Returns how many CPUs' worth of time the cgroups in `membership` (the text of /proc/self/cgroup)
/// and their parents grant. It reads their files under `mount` (/sys/fs/cgroup), of version 1 or 2.
/// nullopt: there is no limit.
[[nodiscard]] std::optional<double> cgroup_cpu_limit(const std::string& membership,
                                                     const std::string& mount);

}  // namespace argosy::os
