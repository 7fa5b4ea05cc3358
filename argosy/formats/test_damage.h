#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <iostream>
#include <string>

#include <gtest/gtest.h>

#include "argosy/base/error.h"

namespace argosy::formats {

/// A file in memory whose content changes, for tests that read thousands of them.
class MemoryFile final {
 public:
  MemoryFile() : fd_(::memfd_create("argosy_test", MFD_CLOEXEC)) {}
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  /// Writes `content` over what was there and gives the path to read it by.
  std::string path(const std::string& content) const {
    EXPECT_EQ(::ftruncate(fd_, 0), 0);
    EXPECT_EQ(::pwrite(fd_, content.data(), content.size(), 0),
              static_cast<ssize_t>(content.size()));
    return "/proc/self/fd/" + std::to_string(fd_);
  }

 private:
  int fd_;
};

/// What a reader made of damaged files.
struct DamageCount {
  int read = 0;     ///< came through
  int refused = 0;  ///< DataError
};

/// Runs `read`, which may throw DataError and nothing else.
inline void count_damage(const std::function<void(const std::string&)>& read,
                         const std::string& content,
                         DamageCount& count) {
  try {
    read(content);
    ++count.read;
  } catch (const DataError&) {
    ++count.refused;
  }
}

/// `content` cut at each of 200 offsets, evenly spread from 0 on, the last byte's included.
inline DamageCount read_truncated(const std::string& content,
                                  const std::function<void(const std::string&)>& read) {
  constexpr size_t kCuts = 200;
  DamageCount count;
  for (size_t i = 0; i < kCuts; ++i) {
    const size_t size = i + 1 == kCuts ? content.size() - 1 : content.size() * i / kCuts;
    SCOPED_TRACE("cut at " + std::to_string(size));
    count_damage(read, content.substr(0, size), count);
  }
  return count;
}

/// `content` with 1 to 8 random bytes changed, `times` times, always the same.
inline DamageCount read_flipped(const std::string& content,
                                const std::function<void(const std::string&)>& read,
                                int times = 10'000) {
  constexpr uint64_t kSeed = 20'260'601;
  std::cout << "flips by seed " << kSeed << '\n';
  uint64_t state = kSeed;
  const auto random = [&state] {  // splitmix64
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  };
  DamageCount count;
  for (int i = 0; i < times; ++i) {
    SCOPED_TRACE("flip " + std::to_string(i));
    std::string damaged = content;
    for (uint64_t n = random() % 8 + 1; n > 0; --n) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    count_damage(read, damaged, count);
  }
  return count;
}

}  // namespace argosy::formats
