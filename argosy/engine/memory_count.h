#pragma once

#include <cstddef>
#include <cstdint>

namespace argosy::engine {

/// What a process holds for tensors on the CPU.
struct MemoryCount {
  int64_t now = 0;   ///< bytes
  int64_t most = 0;  ///< since the last reset_memory_count()
};

/// Counts the memory that libtorch's allocator hands out from now on, in all threads. What rooms
/// map themselves is always counted: see CountedMemory. Once for a process.
///
///     engine::count_memory();            // before the model is made
///     …
///     engine::memory_count().most;       // bytes
///
/// Not counted: what was allocated before, objects without tensors, libraries, and what the system
/// adds to a block. Cost: a search in a table for each block.
void count_memory();

/// Thread-safe.
[[nodiscard]] MemoryCount memory_count();
/// Lets `most` begin again with `now`.
void reset_memory_count();

/// Counts memory that does not come from libtorch's allocator while it lives.
class CountedMemory final {
 public:
  CountedMemory() = default;
  explicit CountedMemory(std::size_t bytes);
  ~CountedMemory();
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;
  CountedMemory(CountedMemory&&) = delete;
  CountedMemory& operator=(CountedMemory&&) = delete;

 private:
  const int64_t bytes_ = 0;
};

}  // namespace argosy::engine
