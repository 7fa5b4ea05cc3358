#pragma once

#include <cstddef>

#include <c10/core/Allocator.h>
#include <torch/version.h>

#include "argosy/engine/version.h"

// What libtorch 1.13 and libtorch 2 (2.11 and 2.15 were tried) ask of a device in different ways.

// The type of device: PrivateUse1 is made for such purposes. In 1.13 Module::to(device) moves no
// parameters there (TensorImpl::has_compatible_shallow_copy_type), so the device borrows XPU, for
// which 1.13 brings no kernels.
#if ARGOSY_TORCH_AT_LEAST(2, 0)
#define ARGOSY_SECOND_DEVICE PrivateUse1
#else
#define ARGOSY_SECOND_DEVICE XPU
#endif

namespace argosy::test {

/// An allocator for all versions: allocate() is const in 1.13, and copy_data() came later.
class Allocator : public c10::Allocator {
 public:
  [[nodiscard]] virtual c10::DataPtr make(size_t bytes) const = 0;
  virtual void copy(void* to, const void* from, size_t bytes) const = 0;

#if ARGOSY_TORCH_AT_LEAST(2, 0)
  c10::DataPtr allocate(size_t bytes) final {
    return make(bytes);
  }
  void copy_data(void* to, const void* from, size_t bytes) const final {
    copy(to, from, bytes);
  }
#else
  c10::DataPtr allocate(size_t bytes) const final {
    return make(bytes);
  }
#endif
};

/// Makes the device the program's accelerator in libtorch 2: autograd keeps its streams in order,
/// and no longer CUDA's. Does nothing in 1.13, where that is CUDA's privilege.
void register_second_device();

/// Whether pin_memory() made the host's memory at an address.
[[nodiscard]] bool is_pinned(const void* address);

}  // namespace argosy::test
