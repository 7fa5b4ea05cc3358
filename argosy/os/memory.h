#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "argosy/base/result.h"
#include "argosy/os/fd.h"

namespace argosy::os {

enum class Access { kRead, kReadWrite };

/// Owns a mapped region of memory and unmaps it once. Empty regions are allowed and map nothing.
class Mapping final {
 public:
  Mapping() = default;
  /// Maps `size` bytes of `fd` from `offset` (whole pages). Everybody who maps them shares them.
  /// `fd` may be closed afterwards.
  /// Errors: errno of mmap; EINVAL when the file is shorter, because reading beyond its end would
  /// raise SIGBUS.
  [[nodiscard]] static Result<Mapping> map(int fd, size_t size, Access access, size_t offset = 0);
  ~Mapping() { unmap(); }
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    if (this != &other) {
      unmap();
      bytes_ = std::exchange(other.bytes_, {});
    }
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  void unmap() noexcept;

 private:
  explicit Mapping(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes_{};
};

/// Maps a whole file for reading. The file must not be truncated while it is mapped.
[[nodiscard]] Result<Mapping> map_file(const std::string& path);

/// Memory that processes share. It begins as zeros and vanishes with its last descriptor and
/// mapping, whatever kills the processes. It lies in no file system, so a small /dev/shm does not
/// limit it.
///
///     SharedMemory memory = *SharedMemory::create("buckets", size);
///     send_fd(peer, memory.fd());                     // or inherit it
///     SharedMemory same = *SharedMemory::open(fd);    // there
class SharedMemory final {
 public:
  /// Creates it. `name` shows in /proc/<pid>/maps and need not be unique. The size is sealed, so
  /// nobody can make the other processes fault by shrinking it.
  [[nodiscard]] static Result<SharedMemory> create(const std::string& name, size_t size);
  /// Maps what another process created. Errors: EPERM when its size is not sealed.
  [[nodiscard]] static Result<SharedMemory> open(UniqueFd fd);

  [[nodiscard]] std::span<std::byte> bytes() const { return mapping_.bytes(); }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  SharedMemory(UniqueFd fd, Mapping mapping) : fd_(std::move(fd)), mapping_(std::move(mapping)) {}
  UniqueFd fd_;
  Mapping mapping_;
};

}  // namespace argosy::os
