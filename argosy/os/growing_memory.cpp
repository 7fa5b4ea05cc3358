#include "argosy/os/growing_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

namespace argosy::os {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHuge = size_t{2} << 20;

}  // namespace

GrowingMemory::~GrowingMemory() {
  if (!bytes_.empty()) {
    ::munmap(bytes_.data(), bytes_.size());
  }
}

Status GrowingMemory::grow(size_t bytes) {
  if (bytes <= bytes_.size()) {
    return {};
  }
  const size_t size = (bytes + kPage - 1) / kPage * kPage;
  void* const start =
      bytes_.empty()
          ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
          : ::mremap(bytes_.data(), bytes_.size(), size, MREMAP_MAYMOVE);
  if (start == MAP_FAILED) {  // NOLINT: the macro casts
    return Failure::from_errno(fmt::format("take {} bytes of memory", size), errno);
  }
  bytes_ = {static_cast<std::byte*>(start), size};
  if (size >= 4 * kHuge) {
    (void)::madvise(start, size, MADV_HUGEPAGE);
  }
  return {};
}

void GrowingMemory::give_back(size_t bytes) {
  const size_t kept = (bytes + kPage - 1) / kPage * kPage;
  if (kept < bytes_.size()) {
    (void)::madvise(bytes_.data() + kept, bytes_.size() - kept, MADV_DONTNEED);
  }
}

}  // namespace argosy::os
