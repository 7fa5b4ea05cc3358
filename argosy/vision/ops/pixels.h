#pragma once

#include <cstdint>
#include <type_traits>

// Internal to the room: elements of images in memory.
namespace argosy::vision::kernels {

/// The upper half of an f32.
struct BF16 {
  uint16_t bits;
};

/// Elements of images, in f32 or bf16. All that one call reads and writes have the same type.
template <typename Void>
struct AnyPixels {
  Void* data = nullptr;
  bool bf16 = false;

  /// Those from the element `first` on; none of none.
  [[nodiscard]] AnyPixels from(int64_t first) const {
    using Byte = std::conditional_t<std::is_const_v<Void>, const char, char>;
    const int64_t size = bf16 ? sizeof(BF16) : sizeof(float);
    return data == nullptr ? *this : AnyPixels{static_cast<Byte*>(data) + first * size, bf16};
  }
  template <typename T>
  [[nodiscard]] auto as() const {
    return static_cast<std::conditional_t<std::is_const_v<Void>, const T, T>*>(data);
  }
};
using Pixels = AnyPixels<const void>;
using PixelsToWrite = AnyPixels<void>;

}  // namespace argosy::vision::kernels
