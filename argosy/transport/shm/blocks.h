#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "argosy/base/result.h"
#include "argosy/os/fd.h"
#include "argosy/transport/shared_block.h"

// Internal to the room.
namespace argosy::transport {

/// The SharedBlocks of a group, as this rank maps them: pieces of one memory file that has no name.
/// All ranks add the same blocks in the same order. Thread-safe.
class Blocks final {
 public:
  /// Makes a file for the blocks, which cannot shrink.
  [[nodiscard]] static os::UniqueFd make_file();
  Blocks(os::UniqueFd file, int ranks)
      : file_(std::make_shared<os::UniqueFd>(std::move(file))), ranks_(ranks) {}

  /// Makes the file longer. One rank calls it before all add the block.
  [[nodiscard]] Status make_room(size_t bytes) const;
  [[nodiscard]] Result<std::shared_ptr<SharedBlock>> add(size_t bytes);

  /// The block in which some bytes lie.
  struct Place {
    uint32_t block = 0;  ///< its number, from 1; 0: the bytes lie in no block
    uint64_t offset = 0;
    std::shared_ptr<SharedBlock> keep{};
  };
  /// Returns the block in which all of these bytes lie. The Place keeps it alive.
  [[nodiscard]] Place find(const void* data, size_t bytes) const;

 private:
  struct Entry {
    const std::byte* begin = nullptr;
    size_t bytes = 0;
    uint32_t number = 0;
    std::weak_ptr<SharedBlock> block{};
  };

  const std::shared_ptr<os::UniqueFd> file_;
  const int ranks_;
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  uint64_t end_ = 0;
  uint32_t added_ = 0;
};

}  // namespace argosy::transport
