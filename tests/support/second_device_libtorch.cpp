#include "tests/support/second_device_libtorch.h"

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <new>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <torch/library.h>

#include "tests/support/second_device.h"

#if ARGOSY_TORCH_AT_LEAST(2, 0)
#include <ATen/detail/PrivateUse1HooksInterface.h>
#endif

namespace argosy::test {
namespace {

/// The host's memory that pin_memory() made, by address.
struct Pinned {
  std::mutex mutex;
  std::map<const char*, size_t> bytes;
};
Pinned& pinned() {
  static auto* const all = new Pinned();
  return *all;
}

class PinnedMemory final : public Allocator {
 public:
  [[nodiscard]] c10::DataPtr make(size_t bytes) const override {
    if (bytes == 0) {
      return {nullptr, c10::kCPU};
    }
    void* const address = std::malloc(bytes);
    if (address == nullptr) {
      throw std::bad_alloc();
    }
    const std::lock_guard lock(pinned().mutex);
    pinned().bytes[static_cast<const char*>(address)] = bytes;
    return {address, address, &unpin, c10::kCPU};
  }
  void copy(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }

 private:
  static void unpin(void* address) {
    const std::lock_guard lock(pinned().mutex);
    pinned().bytes.erase(static_cast<const char*>(address));
    std::free(address);
  }
};
PinnedMemory pinned_memory;

#if ARGOSY_TORCH_AT_LEAST(2, 0)

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*index*/) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return kSecondDevices; }
  /// Seeds it as often as there are devices, each time the same.
  const at::Generator& getDefaultGenerator(c10::DeviceIndex /*index*/) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  bool isPinnedPtr(const void* address) const override { return is_pinned(address); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory; }
};

/// Whether a parameter that Module::to(device) moves stays the same parameter.
bool has_compatible_type(const at::Tensor& tensor, const at::Tensor& from) {
  return tensor.layout() == from.layout();
}

TORCH_LIBRARY_IMPL(aten, ARGOSY_SECOND_DEVICE, library) {
  library.impl("_has_compatible_shallow_copy_type", &has_compatible_type);
}

#else

bool is_pinned_tensor(const at::Tensor& tensor, c10::optional<at::Device> /*device*/) {
  return is_pinned(tensor.data_ptr());
}

at::Tensor pin_memory(const at::Tensor& tensor, c10::optional<at::Device> /*device*/) {
  at::Tensor copy = at::detail::empty_strided_generic(tensor.sizes(),
                                                      tensor.strides(),
                                                      &pinned_memory,
                                                      c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                      tensor.scalar_type());
  return copy.copy_(tensor);
}

TORCH_LIBRARY_IMPL(aten, ARGOSY_SECOND_DEVICE, library) {
  library.impl("is_pinned", &is_pinned_tensor);
  library.impl("_pin_memory", &pin_memory);
}

#endif

}  // namespace

bool is_pinned(const void* address) {
  const std::lock_guard lock(pinned().mutex);
  const auto* const place = static_cast<const char*>(address);
  const auto behind = pinned().bytes.upper_bound(place);
  return behind != pinned().bytes.begin() &&
         place < std::prev(behind)->first + std::prev(behind)->second;
}

void register_second_device() {
#if ARGOSY_TORCH_AT_LEAST(2, 0)
  [[maybe_unused]] static const bool once = [] {
    c10::register_privateuse1_backend("second");
    at::RegisterPrivateUse1HooksInterface(new Hooks());
    return true;
  }();
#endif
}

}  // namespace argosy::test
