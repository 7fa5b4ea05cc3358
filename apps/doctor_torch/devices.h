#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <c10/core/Device.h>

namespace argosy::doctor {

/// How much work a device gets.
struct DeviceWork {
  int64_t matrix = 4096;  ///< rows and columns of the matrices, which are multiplied
  int64_t copy_bytes = int64_t{256} << 20;
  int repeats = 20;  ///< over which a time is averaged, after a first time that does not count
};

/// What came of it.
struct DeviceReport {
  std::vector<std::string> figures{};  ///< "float32 51.2 TFLOP/s", as far as it came
  std::string
      wrong{};  ///< the step and what failed, or that its result is wrong; empty: all is well
};

/// Hears the name of each step before it begins, for whoever must say where a device hangs.
using Tell = std::function<void(const std::string& step)>;

/// Lets a device multiply matrices, copy within its memory, from the host and to it, and times
/// that. All results are compared with what the CPU knows to be right; the first that is wrong ends
/// it. Pinned memory is left out where libtorch has none for this device.
[[nodiscard]] DeviceReport measure_device(c10::Device device,
                                          const Tell& tell,
                                          const DeviceWork& work = {});

/// Copies from each device to each other one, and times that. Ends with the first that is wrong.
[[nodiscard]] DeviceReport measure_pairs(const std::vector<c10::Device>& devices,
                                         const Tell& tell,
                                         const DeviceWork& work = {});

/// For which devices a libtorch was built.
struct DeviceBuild {
  std::string runtime{};                     ///< "CUDA 13.0", "HIP 6.2.41133"; empty: for the CPU
  std::vector<std::string> architectures{};  ///< "sm_90"; empty for ROCm, which does not tell
};
/// Reads it from what at::show_config() returns.
[[nodiscard]] DeviceBuild read_build(const std::string& config);

}  // namespace argosy::doctor
