#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "argosy/base/result.h"

namespace argosy::os {

/// Memory of this process that grows without a copy: the kernel moves its pages. It begins as
/// zeros, and only what was touched takes memory. Large ones lie in huge pages where the system has
/// them, which makes reading at random places faster.
class GrowingMemory final {
 public:
  GrowingMemory() = default;
  ~GrowingMemory();
  GrowingMemory(GrowingMemory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  GrowingMemory& operator=(GrowingMemory&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  GrowingMemory(const GrowingMemory&) = delete;
  GrowingMemory& operator=(const GrowingMemory&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  /// Makes it at least `bytes` long, in whole pages. What it held stays, perhaps elsewhere.
  /// Errors: errno of mmap or mremap; it is then as before.
  Status grow(size_t bytes);
  /// Gives the memory behind the first `bytes` back to the system, in whole pages. It stays
  /// reserved, and is zeros again where it is used.
  void give_back(size_t bytes);

 private:
  std::span<std::byte> bytes_{};
};

}  // namespace argosy::os
