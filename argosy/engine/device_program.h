#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <c10/core/Device.h>

namespace argosy::engine {

/// Kernels in the language of CUDA and HIP, compiled at run time for the device that they run on:
/// by NVRTC, which comes with libtorch's CUDA, or hipRTC. So no build needs a toolkit.
///
///     DeviceProgram twice("twice", R"(
///       extern "C" __global__ void twice(float* data, long long count) {
///         const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
///         if (i < count) data[i] *= 2;
///       })");
///     if (twice.runs_on(x.device())) {
///       twice.launch(x.device(), "twice", {blocks, 256}, x.data_ptr<float>(), x.numel());
///     } else {
///       x.mul_(2);
///     }
///
/// A source includes nothing. Before it stands kDevicePrelude.
/// Thread-safe.
class DeviceProgram final {
 public:
  struct Grid {
    unsigned blocks = 1;
    unsigned threads = 1;
    unsigned blocks_y = 1;
    unsigned threads_y = 1;
  };

  /// Compiles nothing yet. `name`: for messages.
  DeviceProgram(std::string name, std::string source);
  ~DeviceProgram();
  DeviceProgram(const DeviceProgram&) = delete;
  DeviceProgram& operator=(const DeviceProgram&) = delete;
  DeviceProgram(DeviceProgram&&) = delete;
  DeviceProgram& operator=(DeviceProgram&&) = delete;

  /// Whether launch() works there. The first call for a device compiles and loads, which takes some
  /// tenths of a second and may wait for the whole device. Without a compiler for it a warning says
  /// why not. Never with ARGOSY_DEVICE_KERNELS=0.
  /// Errors: c10::Error where the driver refuses what was compiled, as without memory: to go on
  /// without would give other bits than other processes have.
  [[nodiscard]] bool runs_on(c10::Device device);

  /// Loads a kernel before its first launch, which then does not wait for it. Errors: as launch().
  void prepare(c10::Device device, const char* kernel);
  /// Queues a kernel in the device's current stream. `args` have exactly the types of the kernel's.
  /// Errors: UsageError unless runs_on(device), or for an unknown kernel; c10::Error where the
  /// driver refuses the launch.
  template <typename... Args>
  void launch(c10::Device device, const char* kernel, const Grid& grid, Args... args) {
    std::array<void*, sizeof...(Args)> addresses{&args...};
    queue(device, kernel, grid, addresses.data());
  }

 private:
  struct Loaded;

  [[nodiscard]] Loaded& loaded_on(c10::Device device);
  [[nodiscard]] void* kernel_on(c10::Device device, const char* name);
  void queue(c10::Device device, const char* kernel, const Grid& grid, void** args);

  const std::string name_;
  const std::string source_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Loaded>> devices_;  // by index; null: not asked for yet
};

/// Functions for numbers of 16 bits, which round to nearest even and keep NaN and denormals:
///
///     float f16_value(unsigned short bits);     unsigned short f16_bits(float value);
///     float bf16_value(unsigned short bits);    unsigned short bf16_bits(float value);
extern const char* const kDevicePrelude;

/// What the compiler made of a source, kDevicePrelude before it.
struct CompiledProgram {
  std::string code{};   ///< for the driver; empty: it failed
  std::string error{};  ///< its messages, or why there is no compiler
  bool has_compiler = true;
};
/// `architecture`: "sm_90"; empty: that of the current device, which only hipRTC knows.
[[nodiscard]] CompiledProgram compile_program(const std::string& name,
                                              const std::string& source,
                                              const std::string& architecture);

}  // namespace argosy::engine
