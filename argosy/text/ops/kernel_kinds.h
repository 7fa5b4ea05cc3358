#pragma once

#include <cstddef>
#include <cstdint>

// Internal to the room: what the kernels and those who call them share.
namespace argosy::text::kernels {

/// The type of numbers in memory. All are computed in f32.
enum class Kind : uint8_t { kF32, kBf16 };

/// Numbers in memory; null if there are none.
struct Source {
  const void* data = nullptr;
  Kind kind = Kind::kF32;
};
struct Target {
  void* data = nullptr;
  Kind kind = Kind::kF32;
};

}  // namespace argosy::text::kernels
