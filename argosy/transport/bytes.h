#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

// Internal to the room: steps and copies in plain memory.
namespace argosy::transport {

inline const std::byte* at(const void* memory, int64_t offset) {
  return static_cast<const std::byte*>(memory) + offset;
}
inline std::byte* at(void* memory, int64_t offset) {
  return static_cast<std::byte*>(memory) + offset;
}

/// Nothing for no bytes, which may come with null pointers, and where the bytes lie there already.
inline void copy_bytes(void* to, const void* from, int64_t bytes) {
  if (bytes > 0 && to != from) {
    std::memmove(to, from, static_cast<size_t>(bytes));
  }
}

}  // namespace argosy::transport
