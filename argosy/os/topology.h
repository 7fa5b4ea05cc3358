#pragma once

#include <string>
#include <vector>

namespace argosy::os {

/// A hardware thread and where it lies.
struct CpuPlace {
  int cpu = 0;
  int core = 0;     ///< the lowest of the hardware threads that share the core
  int package = 0;  ///< socket
  int node = 0;     ///< NUMA node
};

/// Returns the hardware threads that this process may run on.
[[nodiscard]] std::vector<int> affinity_cpus();

/// Returns where `cpus` lie, by the kernel's files under `sysfs`. One without files counts as a
/// core of its own.
[[nodiscard]] std::vector<CpuPlace> cpu_places(const std::vector<int>& cpus,
                                               const std::string& sysfs = "/sys/devices/system");

/// How processes are bound to processors.
enum class CpuBinding {
  kNone,
  kCores,   ///< each to whole cores of its own, neighbours to neighbours
  kNuma,    ///< each to all of a NUMA node
  kSocket,  ///< each to all of a socket
};

/// Divides the hardware threads evenly among `shares` processes and returns the threads of each.
/// Returns empty lists when there are fewer cores than processes; none is then bound.
[[nodiscard]] std::vector<std::vector<int>> share_out(std::vector<CpuPlace> places,
                                                      int shares,
                                                      CpuBinding binding);
/// The same for processes that each use a device: `near` has the hardware threads next to each
/// one's. Processes with the same ones share these. Returns empty lists too where one's are not
/// known, or not among `places`, or are in part another's.
[[nodiscard]] std::vector<std::vector<int>> share_out_near(
    const std::vector<CpuPlace>& places,
    const std::vector<std::vector<int>>& near,
    CpuBinding binding);

/// Returns the number of cores of the process that has the fewest, if those that are bound to a
/// core divide it: the most threads that all of them may have. `bound` has the hardware threads of
/// each. At least 1.
[[nodiscard]] int fewest_cores(const std::vector<CpuPlace>& places,
                               const std::vector<std::vector<int>>& bound);

}  // namespace argosy::os
