#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "argosy/checkpoint/manifest.h"
#include "argosy/os/fd.h"

namespace argosy::checkpoint {

/// A file of a checkpoint, of which parts can be read. Every byte of them is checked.
/// Not thread-safe.
/// Errors: CheckpointError("checkpoint.load") with the path: it cannot be read, has another length,
/// or bytes changed. Cost: read() reads whole blocks (FileChecksums); of a file without them the
/// constructor reads all.
class BlockReader final {
 public:
  BlockReader(std::string path, ManifestFile known);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  void read(int64_t offset, std::span<std::byte> out);

 private:
  void read_unchecked(int64_t offset, std::span<std::byte> out) const;
  void check_block(int64_t block, std::span<const std::byte> bytes) const;
  [[nodiscard]] int64_t size_of(int64_t block) const;
  std::span<const std::byte> load(int64_t block);

  std::string path_;
  ManifestFile known_;
  os::UniqueFd fd_{};
  std::vector<std::byte> block_{};  // the one that was read last, of which somebody wanted a part
  int64_t loaded_ = -1;             // its number
};

}  // namespace argosy::checkpoint
