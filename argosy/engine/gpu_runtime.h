#pragma once

#include <dlfcn.h>

#include <string>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace argosy::engine::gpu {

/// Returns a function of the libraries that the process has loaded, as libtorch loads those of CUDA
/// or ROCm; nullptr where none has it. Looked up and not linked: so a build for the CPU is the same
/// build.
///
///     using Count = int (*)(int* count);
///     const auto count = gpu::loaded<Count>("cudaGetDeviceCount");
template <typename Function>
[[nodiscard]] Function loaded(const char* name, void* library = RTLD_DEFAULT) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what dlsym is for
  return reinterpret_cast<Function>(::dlsym(library, name));
}

/// Whether the devices that libtorch calls CUDA's are ROCm's.
[[nodiscard]] bool is_rocm();
/// Whether this libtorch has streams of CUDA or ROCm.
[[nodiscard]] bool has_streams();
/// Returns the cudaStream_t or hipStream_t. Needs has_streams().
[[nodiscard]] void* handle_of(c10::Stream stream);
/// Returns a device's address on the bus of its host, "0000:17:00.0"; empty where it is not known.
[[nodiscard]] std::string bus_address(c10::Device device);
/// Returns the compute capability as the compilers of CUDA call it, "sm_90"; empty where it is not
/// known.
[[nodiscard]] std::string architecture(c10::Device device);

}  // namespace argosy::engine::gpu
