#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace argosy::os {

/// A GPU of this machine.
struct Gpu {
  std::string address{};    ///< on the PCI bus ("0000:17:00.0"); empty: not known
  std::vector<int> cpus{};  ///< hardware threads next to it; empty: not known
  std::string uuid{};       ///< "GPU-5ab3…"; empty: not known
};

enum class GpuDriver { kNone, kNvidia, kAmd };

/// The GPUs of this machine, in the order of their numbers.
struct Gpus {
  GpuDriver driver = GpuDriver::kNone;
  std::vector<Gpu> all{};  ///< that this process may open; AMD's: of these ROCR_VISIBLE_DEVICES'
  int closed = 0;          ///< how many more the machine has, which this process may not open
  /// The list by which a process chooses among them. nullopt: it sees all.
  std::optional<std::string> list{};
  /// The variable that has `list`: CUDA_VISIBLE_DEVICES, which AMD's runtime reads too, or
  /// HIP_VISIBLE_DEVICES.
  const char* list_from = "CUDA_VISIBLE_DEVICES";
  /// Those on the list. Of one that it names in a way that is not known here ("MIG-5a…") nothing is
  /// known.
  std::vector<Gpu> visible{};

  /// The variable by which the driver's own runtime takes a list.
  [[nodiscard]] const char* variable() const;
};

/// Returns the GPUs by the kernel's files under `root`: those of NVIDIA's driver, else those of
/// AMD's. No library of a driver is loaded, and no GPU is opened.
///
/// Left out are those whose device files this process may not open, by modes or by its cgroup, for
/// the runtimes leave them out too, and AMD's of fewer than 48 SIMDs, which are parts of desktop
/// processors: whatever the runtime does with these, nobody trains there.
///
/// NVIDIA's are numbered along the bus, as CUDA does where all are alike. A list counts up to the
/// first entry that names no GPU, and at most one MIG instance counts. `variable` returns variables
/// of the environment. CUDA_VISIBLE_DEVICES that is set to nothing hides all of NVIDIA's GPUs,
/// ROCR_VISIBLE_DEVICES all of AMD's; to AMD's runtime the others then count as not set.
[[nodiscard]] Gpus find_gpus(
    const std::string& root,
    const std::function<std::optional<std::string>(const char*)>& variable);
/// The same for this process.
[[nodiscard]] Gpus find_gpus();

}  // namespace argosy::os
