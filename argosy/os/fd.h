#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "argosy/base/deadline.h"
#include "argosy/base/result.h"

namespace argosy::os {

/// Owns a file descriptor and closes it once.
class UniqueFd final {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) noexcept : fd_(fd) {}
  ~UniqueFd() { close(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = other.release();
    }
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool valid() const noexcept { return fd_ >= 0; }
  explicit operator bool() const noexcept { return valid(); }
  /// Gives the descriptor up without closing it.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  /// Idempotent. Keeps errno, so that it may run between a failed call and its message.
  void close() noexcept;

 private:
  int fd_ = -1;
};

/// Calls open(2) with O_CLOEXEC and tries again on EINTR. The failure names the path.
[[nodiscard]] Result<UniqueFd> open_file(const std::string& path, int flags, mode_t mode = 0644);

/// Both ends of a pipe. They are closed on exec.
struct Pipe {
  UniqueFd read{};
  UniqueFd write{};
};
[[nodiscard]] Result<Pipe> make_pipe();

/// Returns a second descriptor for the same open file. It is closed on exec.
[[nodiscard]] Result<UniqueFd> duplicate(int fd);

/// Sets O_NONBLOCK. The flag belongs to the open file, which other processes may share, so never
/// set it on an inherited standard stream.
Status set_nonblocking(int fd);

/// Waits for `events` (POLLIN, POLLOUT). False: the deadline passed. A hang-up or an error counts
/// as ready, because the next read or write reports it.
[[nodiscard]] Result<bool> wait_ready(int fd, short events, const Deadline& deadline);

/// Reads until `buffer` is full or the stream ends; the returned count tells which. Handles EINTR,
/// partial reads and non-blocking descriptors.
/// Errors: errno of read(2); ETIMEDOUT when the deadline passed (non-blocking descriptors only).
[[nodiscard]] Result<size_t> read_all(int fd,
                                      std::span<std::byte> buffer,
                                      const Deadline& deadline = Deadline::never());

/// Reads a file from `offset` on until `buffer` is full or the file ends; the returned count tells
/// which. Handles EINTR and partial reads, and does not move the descriptor's position.
/// Errors: errno of pread(2).
[[nodiscard]] Result<size_t> read_at(int fd, std::span<std::byte> buffer, int64_t offset);

/// Reads up to the end of the stream.
/// Errors: as for read_all; EFBIG when more than `limit` bytes come.
[[nodiscard]] Result<std::string> read_to_end(int fd,
                                              size_t limit = size_t{64} << 20,
                                              const Deadline& deadline = Deadline::never());

/// Writes everything. Handles EINTR, partial writes and non-blocking descriptors.
/// Errors: errno of write(2) (EPIPE needs SIGPIPE ignored); ETIMEDOUT as for read_all.
Status write_all(int fd,
                 std::span<const std::byte> bytes,
                 const Deadline& deadline = Deadline::never());
Status write_all(int fd, std::string_view text, const Deadline& deadline = Deadline::never());

/// Returns the first `most` bytes of a file, or all if it has fewer. Errors: as for open_file and
/// read_at.
[[nodiscard]] Result<std::string> read_head(const std::string& path, size_t most);
/// Returns the whole content of a small file. Works for /proc and /sys too. Errors: as for
/// open_file and read_to_end.
[[nodiscard]] Result<std::string> read_file(const std::string& path,
                                            size_t limit = size_t{64} << 20);

}  // namespace argosy::os
