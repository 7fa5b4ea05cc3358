#include "argosy/engine/gpu_runtime.h"

#include <fmt/format.h>

#include <array>
#include <atomic>

namespace argosy::engine::gpu {
namespace {

/// Member functions of libtorch's streams, whose one member is a c10::Stream. ROCm's streams are
/// HIP's, though their devices are called CUDA's.
using StreamOf = void* (*)(const c10::Stream*);

struct Streams {
  StreamOf function = nullptr;
  c10::DeviceType type = c10::kCUDA;
};

std::atomic<StreamOf> of_cuda{};
std::atomic<StreamOf> of_hip{};

/// Looked for until it is there: libtorch's library of GPUs can come later.
StreamOf find(std::atomic<StreamOf>& known, const char* symbol) {
  StreamOf function = known.load();
  if (function == nullptr) {
    function = loaded<StreamOf>(symbol);
    known = function;
  }
  return function;
}

Streams streams() {
  if (const StreamOf cuda = find(of_cuda, "_ZNK3c104cuda10CUDAStream6streamEv")) {
    return {cuda, c10::kCUDA};
  }
  return {find(of_hip, "_ZNK3c103hip9HIPStream6streamEv"), c10::kHIP};
}

}  // namespace

bool is_rocm() {
  return ::dlsym(RTLD_DEFAULT, "hipGetDeviceCount") != nullptr;
}

bool has_streams() {
  return streams().function != nullptr;
}

void* handle_of(c10::Stream stream) {
  const Streams known = streams();
  const c10::Stream same(
      c10::Stream::UNSAFE, c10::Device(known.type, stream.device_index()), stream.id());
  return known.function(&same);
}

std::string bus_address(c10::Device device) {
  using Tell = int (*)(char* text, int bytes, int device);
  for (const char* const name : {"cudaDeviceGetPCIBusId", "hipDeviceGetPCIBusId"}) {
    if (const auto tell = loaded<Tell>(name)) {
      std::array<char, 32> text{};
      const bool told = tell(text.data(), static_cast<int>(text.size()), device.index()) == 0;
      return told ? text.data() : "";
    }
  }
  return "";
}

std::string architecture(c10::Device device) {
  constexpr int kMajor = 75, kMinor = 76;  // cudaDevAttrComputeCapabilityMajor and …Minor
  using Attribute = int (*)(int* value, int attribute, int device);
  const auto attribute = loaded<Attribute>("cudaDeviceGetAttribute");
  int major = 0, minor = 0;
  const bool known = attribute != nullptr && attribute(&major, kMajor, device.index()) == 0 &&
                     attribute(&minor, kMinor, device.index()) == 0;
  return known ? fmt::format("sm_{}{}", major, minor) : "";
}

}  // namespace argosy::engine::gpu
