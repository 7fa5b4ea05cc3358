#pragma once

#include <type_traits>

#include "argosy/text/ops/kernel_kinds.h"
#include "argosy/text/ops/lanes.h"

// Internal to the kernels of this room.
namespace argosy::text::kernels {

/// Calls body(pointer) with a pointer to the type of the numbers.
template <typename Body>
ARGOSY_KERNEL_INLINE void with_type(const Source& source, const Body& body) {
  if (source.kind == Kind::kF32) {
    body(static_cast<const float*>(source.data));
  } else {
    body(static_cast<const Bf16*>(source.data));
  }
}
template <typename Body>
ARGOSY_KERNEL_INLINE void with_type(const Target& target, const Body& body) {
  if (target.kind == Kind::kF32) {
    body(static_cast<float*>(target.data));
  } else {
    body(static_cast<Bf16*>(target.data));
  }
}

/// A pointer of the type of another; for numbers that all have one kind.
template <typename T>
ARGOSY_KERNEL_INLINE auto* as_type_of(const T* /*like*/, const void* data) {
  return static_cast<const T*>(data);
}
template <typename T>
ARGOSY_KERNEL_INLINE auto* as_type_of(const T* /*like*/, void* data) {
  return static_cast<T*>(data);
}

}  // namespace argosy::text::kernels
