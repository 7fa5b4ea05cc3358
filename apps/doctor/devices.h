#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "argosy/os/gpus.h"

#include "apps/doctor/finding.h"
#include "apps/doctor/gpu_tools.h"
#include "apps/doctor/program.h"

namespace argosy::doctor {

/// The GPUs of this machine, and what is known of them without using one.
struct SeenGpus {
  os::Gpus gpus{};
  ToolSaid tool{};  ///< nothing was asked where no GPU is visible

  /// Returns what the tool said of a GPU; an empty one: nothing.
  [[nodiscard]] GpuFacts facts_of(const os::Gpu& gpu) const;
};

/// Asks the vendor's tool about `gpus`, if any of them is visible.
[[nodiscard]] SeenGpus look_at(os::Gpus gpus);

/// Says how many GPUs there are, of which kind, and with which driver.
[[nodiscard]] Finding gpus_finding(const SeenGpus& seen);

/// Lets `engine`, the path of argosy-torch, compute and copy on each GPU, and says what came of it:
/// of libtorch, each GPU, copies between them, and NCCL. Starts nothing where no GPU is visible.
/// Takes some seconds for each GPU; a minute and 30 s for each at most.
[[nodiscard]] std::vector<Finding> device_findings(const SeenGpus& seen, const std::string& engine);

/// Returns the findings in what argosy-torch wrote. Where it did not end well the last one is bad
/// and names what it was doing. `clock_reasons`: what ask_clock_reasons() said meanwhile.
[[nodiscard]] std::vector<Finding> read_devices(
    const SeenGpus& seen, const Ran& ran, const std::map<std::string, uint64_t>& clock_reasons);

}  // namespace argosy::doctor
