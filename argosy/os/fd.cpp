#include "argosy/os/fd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

namespace argosy::os {
namespace {

using namespace std::chrono_literals;

/// After EAGAIN: ok when the descriptor became ready in time.
Status await(int fd, short events, const Deadline& deadline, const char* step) {
  Result<bool> ready = wait_ready(fd, events, deadline);
  if (!ready.ok()) {
    return std::move(ready).failure();
  }
  return *ready ? Status() : Status(Failure::from_errno(step, ETIMEDOUT));
}

/// One read(2) that waits where it must; 0 is the end of the stream.
Result<size_t> read_some(int fd, void* to, size_t size, const Deadline& deadline) {
  while (true) {
    const ssize_t got = ::read(fd, to, size);
    if (got >= 0) {
      return static_cast<size_t>(got);
    }
    if (errno == EAGAIN) {
      Status ready = await(fd, POLLIN, deadline, "read");
      if (!ready.ok()) {
        return std::move(ready).failure();
      }
    } else if (errno != EINTR) {
      return Failure::from_errno("read", errno);
    }
  }
}

}  // namespace

void UniqueFd::close() noexcept {
  if (fd_ < 0) {
    return;
  }
  const int saved = errno;
  ::close(release());  // never retried: on Linux the descriptor is gone even after EINTR
  errno = saved;
}

Result<UniqueFd> open_file(const std::string& path, int flags, mode_t mode) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    return Failure::from_errno("open " + path, errno);
  }
  return UniqueFd(fd);
}

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Failure::from_errno("pipe", errno);
  }
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<UniqueFd> duplicate(int fd) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) {
    return Failure::from_errno("duplicate a file descriptor", errno);
  }
  return UniqueFd(copy);
}

Status set_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
    return Failure::from_errno("set O_NONBLOCK", errno);
  }
  return {};
}

Result<bool> wait_ready(int fd, short events, const Deadline& deadline) {
  while (true) {
    pollfd entry{fd, events, 0};
    // Deadline::never() does not fit poll's int; an hour does.
    const auto step = std::min<std::chrono::milliseconds>(deadline.remaining(), 1h);
    const int ready = ::poll(&entry, 1, static_cast<int>(step.count()));
    if (ready > 0) {
      return true;
    }
    if (ready < 0 && errno != EINTR) {
      return Failure::from_errno("poll", errno);
    }
    if (ready == 0 && deadline.expired()) {
      return false;
    }
  }
}

Result<size_t> read_all(int fd, std::span<std::byte> buffer, const Deadline& deadline) {
  size_t filled = 0;
  while (filled < buffer.size()) {
    Result<size_t> got = read_some(fd, buffer.data() + filled, buffer.size() - filled, deadline);
    if (!got.ok()) {
      return std::move(got).failure();
    }
    if (*got == 0) {
      break;
    }
    filled += *got;
  }
  return filled;
}

Result<std::string> read_to_end(int fd, size_t limit, const Deadline& deadline) {
  std::string text;
  std::array<char, 16384> chunk{};
  while (true) {
    Result<size_t> got = read_some(fd, chunk.data(), chunk.size(), deadline);
    if (!got.ok()) {
      return std::move(got).failure();
    }
    if (*got == 0) {
      return text;
    }
    if (text.size() + *got > limit) {
      return Failure::from_errno(fmt::format("read: more than {} bytes", limit), EFBIG);
    }
    text.append(chunk.data(), *got);
  }
}

Status write_all(int fd, std::span<const std::byte> bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(put));
    } else if (errno == EAGAIN) {
      Status ready = await(fd, POLLOUT, deadline, "write");
      if (!ready.ok()) {
        return ready;
      }
    } else if (errno != EINTR) {
      return Failure::from_errno("write", errno);
    }
  }
  return {};
}

Status write_all(int fd, std::string_view text, const Deadline& deadline) {
  return write_all(fd, std::as_bytes(std::span(text)), deadline);
}

Result<size_t> read_at(int fd, std::span<std::byte> buffer, int64_t offset) {
  size_t done = 0;
  while (done < buffer.size()) {
    const ssize_t n = ::pread(fd,
                              buffer.data() + done,
                              buffer.size() - done,
                              static_cast<off_t>(offset + static_cast<int64_t>(done)));
    if (n == 0) {
      break;
    }
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (errno != EINTR) {
      return Failure::from_errno("pread", errno);
    }
  }
  return done;
}

Result<std::string> read_head(const std::string& path, size_t most) {
  Result<UniqueFd> fd = open_file(path, O_RDONLY | O_NONBLOCK);
  if (!fd.ok()) {
    return std::move(fd).failure();
  }
  std::string text(most, '\0');
  const Result<size_t> got = read_at(fd->get(), std::as_writable_bytes(std::span(text)), 0);
  if (!got.ok()) {
    return Failure(got.failure()).because(path);
  }
  text.resize(*got);
  return text;
}

Result<std::string> read_file(const std::string& path, size_t limit) {
  Result<UniqueFd> fd = open_file(path, O_RDONLY);
  if (!fd.ok()) {
    return std::move(fd).failure();
  }
  Result<std::string> text = read_to_end(fd->get(), limit);
  if (!text.ok()) {
    return std::move(text).failure().because(path);
  }
  return text;
}

}  // namespace argosy::os
