#include "argosy/os/memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace argosy::os {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

Result<size_t> size_of(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    return Failure::from_errno("fstat", errno);
  }
  return static_cast<size_t>(info.st_size);
}

}  // namespace

Result<Mapping> Mapping::map(int fd, size_t size, Access access, size_t offset) {
  const Result<size_t> there = size_of(fd);
  if (!there.ok()) {
    return there.failure();
  }
  if (*there < offset || *there - offset < size) {
    return Failure::from_errno(
        fmt::format("map {} bytes of a file of {}{}",
                    size,
                    *there,
                    offset == 0 ? "" : fmt::format(" from byte {} on", offset)),
        EINVAL);
  }
  if (size == 0) {
    return Mapping();
  }
  const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* start = ::mmap(nullptr, size, protection, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (start == MAP_FAILED) {  // NOLINT: the macro casts
    return Failure::from_errno(fmt::format("map {} bytes", size), errno);
  }
  return Mapping(std::span(static_cast<std::byte*>(start), size));
}

void Mapping::unmap() noexcept {
  if (!bytes_.empty()) {
    ::munmap(bytes_.data(), bytes_.size());
    bytes_ = {};
  }
}

Result<Mapping> map_file(const std::string& path) {
  Result<UniqueFd> fd = open_file(path, O_RDONLY);
  if (!fd.ok()) {
    return std::move(fd).failure();
  }
  const Result<size_t> size = size_of(fd->get());
  if (!size.ok()) {
    return size.failure();
  }
  Result<Mapping> mapping = Mapping::map(fd->get(), *size, Access::kRead);
  if (!mapping.ok()) {
    return std::move(mapping).failure().because(path);
  }
  return mapping;
}

Result<SharedMemory> SharedMemory::create(const std::string& name, size_t size) {
  UniqueFd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) {
    return Failure::from_errno("memfd_create " + name, errno);
  }
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return Failure::from_errno(fmt::format("make {} bytes of shared memory", size), errno);
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, kSizeSeals) != 0) {
    return Failure::from_errno("seal " + name, errno);
  }
  return open(std::move(fd));
}

Result<SharedMemory> SharedMemory::open(UniqueFd fd) {
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals) {
    return Failure::from_errno("open shared memory whose size is not sealed", EPERM);
  }
  const Result<size_t> size = size_of(fd.get());
  if (!size.ok()) {
    return size.failure();
  }
  Result<Mapping> mapping = Mapping::map(fd.get(), *size, Access::kReadWrite);
  if (!mapping.ok()) {
    return std::move(mapping).failure();
  }
  return SharedMemory(std::move(fd), *std::move(mapping));
}

}  // namespace argosy::os
