#pragma once

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "argosy/base/error.h"

namespace argosy::formats {

/// While it lives no more than so much address space can be had: memory that a damaged length asks
/// for is std::bad_alloc, which no test expects. Nothing under sanitizers, which need all of it.
class MemoryLimit final {
 public:
  explicit MemoryLimit([[maybe_unused]] rlim_t bytes = rlim_t{1} << 30) {
    ::getrlimit(RLIMIT_AS, &before_);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    rlimit limit = before_;
    limit.rlim_cur = std::min(bytes, before_.rlim_max);
    ::setrlimit(RLIMIT_AS, &limit);
#endif
  }
  ~MemoryLimit() {
    ::setrlimit(RLIMIT_AS, &before_);
  }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_{};
};

/// What reading damaged files came to.
struct Damage {
  int accepted = 0;  ///< read without an error
  int refused = 0;   ///< DataError
};

/// A file in memory, for content that changes ten thousand times: disks are slow at that.
class MemoryFile final {
 public:
  MemoryFile()
      : fd_(::memfd_create("damaged", MFD_CLOEXEC)),
        path_("/proc/self/fd/" + std::to_string(fd_)) {}
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  void set(const std::string& content) const {
    const auto size = static_cast<ssize_t>(content.size());
    ASSERT_EQ(::ftruncate(fd_, 0), 0);
    ASSERT_EQ(::pwrite(fd_, content.data(), content.size(), 0), size);
  }

 private:
  int fd_;
  std::string path_;
};

/// Reads `content` as a file; anything but success or a DataError that names the file fails the
/// test.
template <typename Read>
void read_damaged(const std::string& content, const Read& read, Damage& damage) {
  static const MemoryFile file;
  file.set(content);
  try {
    read(file.path());
    ++damage.accepted;
  } catch (const DataError& error) {
    ++damage.refused;
    EXPECT_NE(std::string(error.what()).find(file.path()), std::string::npos) << error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "not a DataError: " << error.what();
  }
}

/// Reads what is left of `good` when it ends at each of `n` offsets (each offset, if it is short).
template <typename Read>
[[nodiscard]] Damage truncate_everywhere(const std::string& good,
                                         const Read& read,
                                         size_t n = 200) {
  const MemoryLimit limit;
  Damage damage;
  n = std::min(n, good.size());
  for (size_t i = 0; i < n && !testing::Test::HasFailure(); ++i) {
    const size_t size = good.size() * i / n;
    SCOPED_TRACE("truncated to " + std::to_string(size) + " bytes");
    read_damaged(good.substr(0, size), read, damage);
  }
  return damage;
}

/// Reads `good` `n` times, each time with one to four of its bytes changed at random.
template <typename Read>
[[nodiscard]] Damage flip_at_random(const std::string& good, const Read& read, int n = 10'000) {
  const MemoryLimit limit;
  Damage damage;
  std::mt19937 random(20'13);
  for (int i = 0; i < n && !testing::Test::HasFailure(); ++i) {
    std::string bad = good;
    for (auto flips = 1 + random() % 4; flips > 0; --flips) {
      char& byte = bad[random() % bad.size()];
      byte = static_cast<char>(byte ^ static_cast<char>(1 + random() % 255));
    }
    SCOPED_TRACE("change number " + std::to_string(i));
    read_damaged(bad, read, damage);
  }
  return damage;
}

}  // namespace argosy::formats
