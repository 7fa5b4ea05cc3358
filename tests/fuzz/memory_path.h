#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

/// The bytes of a run as a file in memory, for readers that take a path. One file, written over.
inline const std::string& memory_path(const uint8_t* data, size_t size) {
  static const int fd = memfd_create("argosy_fuzz", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != static_cast<ssize_t>(size)) {
    std::abort();
  }
  return path;
}
