#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::checkpoint {

/// The XXH3 hash (64 bits) of bytes that come in pieces, as "xxh3:" and 16 digits. It finds damage,
/// not malice.
/// Cost: 10 GB/s and more, so a writer beside a training takes no noticeable time.
class Checksum final {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void update(std::span<const std::byte> bytes);
  /// Returns the hash of all bytes so far.
  [[nodiscard]] std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] std::string checksum_of(std::string_view bytes);

/// Bytes of a file that have a checksum of their own, so that a part of it can be read and checked.
inline constexpr int64_t kBlockBytes = int64_t{1} << 20;
inline constexpr size_t kBlockDigits = 16;
/// Returns the digits of a block's hash.
[[nodiscard]] std::string block_digits(std::span<const std::byte> block);

/// The checksums of a file whose bytes come in pieces.
class FileChecksums final {
 public:
  void update(std::span<const std::byte> bytes);
  /// Returns the hash of all bytes so far.
  [[nodiscard]] std::string text() const { return all_.text(); }
  /// Returns the digits of all blocks, one after the other; of a file that is one block, nothing.
  [[nodiscard]] std::string blocks() const;

 private:
  Checksum all_{};
  std::string digits_{};           // of the blocks that are complete
  std::vector<std::byte> open_{};  // bytes of the one that is not
};

}  // namespace argosy::checkpoint
