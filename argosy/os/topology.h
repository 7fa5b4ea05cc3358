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

/// The hardware threads that this process may run on.
[[nodiscard]] std::vector<int> affinity_cpus();

/// Where they lie, by the kernel's files under `sysfs`; one that has none is a core of its own.
[[nodiscard]] std::vector<CpuPlace> cpu_places(const std::vector<int>& cpus,
                                               const std::string& sysfs = "/sys/devices/system");

/// How processes are bound to processors.
enum class CpuBinding {
  kNone,
  kCores,   ///< each to whole cores of its own, neighbours to neighbours
  kNuma,    ///< each to all of a NUMA node
  kSocket,  ///< each to all of a socket
};

/// The hardware threads of each of `shares` processes, which are spread evenly. Empty lists: there
/// are fewer cores than processes, and none is bound.
[[nodiscard]] std::vector<std::vector<int>> share_out(std::vector<CpuPlace> places,
                                                      int shares,
                                                      CpuBinding binding);

}  // namespace argosy::os
