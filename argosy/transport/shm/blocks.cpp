#include "argosy/transport/shm/blocks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/os/memory.h"

namespace argosy::transport {
namespace {

constexpr size_t kBlockPage = 4096;

size_t block_pages(size_t bytes) {
  return (bytes + kBlockPage - 1) / kBlockPage * kBlockPage;
}

/// A page more than the others see: how many ranks have let go.
size_t whole_block(size_t bytes) {
  return block_pages(bytes) + kBlockPage;
}

class FileBlock final : public SharedBlock {
 public:
  FileBlock(std::shared_ptr<os::UniqueFd> file,
            uint64_t begin,
            os::Mapping mapping,
            size_t bytes,
            int ranks)
      : file_(std::move(file)),
        begin_(begin),
        mapping_(std::move(mapping)),
        bytes_(bytes),
        ranks_(static_cast<uint32_t>(ranks)) {}
  ~FileBlock() override {
    if (::getpid() == owner_ && gone().fetch_add(1) + 1 == ranks_) {
      discard(0, mapping_.bytes().size());
    }
  }
  FileBlock(const FileBlock&) = delete;
  FileBlock& operator=(const FileBlock&) = delete;
  FileBlock(FileBlock&&) = delete;
  FileBlock& operator=(FileBlock&&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const override {
    return mapping_.bytes().first(bytes_);
  }

  void discard(size_t offset, size_t count) noexcept override {
    const size_t first = block_pages(offset);
    const size_t end = (offset + count) / kBlockPage * kBlockPage;
    if (first < end && ::getpid() == owner_) {
      (void)::fallocate(file_->get(),
                        FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        static_cast<off_t>(begin_ + first),
                        static_cast<off_t>(end - first));
    }
  }

 private:
  [[nodiscard]] std::atomic<uint32_t>& gone() const {
    return *reinterpret_cast<std::atomic<uint32_t>*>(mapping_.bytes().last(kBlockPage).data());
  }

  const std::shared_ptr<os::UniqueFd> file_;
  const uint64_t begin_;
  const os::Mapping mapping_;
  const size_t bytes_;
  const uint32_t ranks_;
  const pid_t owner_ = ::getpid();  ///< what a forked child lets go of is still the parent's
};

}  // namespace

os::UniqueFd Blocks::make_file() {
  os::UniqueFd fd(::memfd_create("argosy-blocks", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    throw Error("transport.shm", "memfd_create: " + errno_message(errno));
  }
  return fd;
}

Status Blocks::make_room(size_t bytes) const {
  const std::lock_guard lock(mutex_);
  if (::ftruncate(file_->get(), static_cast<off_t>(end_ + whole_block(bytes))) != 0) {
    return Failure::from_errno(fmt::format("make {} bytes of shared memory", bytes), errno);
  }
  return {};
}

Result<std::shared_ptr<SharedBlock>> Blocks::add(size_t bytes) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [](const Entry& entry) { return entry.block.expired(); });
  const uint64_t begin = std::exchange(end_, end_ + whole_block(bytes));
  ++added_;
  Result<os::Mapping> mapping =
      os::Mapping::map(file_->get(), whole_block(bytes), os::Access::kReadWrite, begin);
  if (!mapping.ok()) {
    return std::move(mapping).failure();
  }
  const std::byte* const start = mapping->bytes().data();
  std::shared_ptr<SharedBlock> block =
      std::make_shared<FileBlock>(file_, begin, *std::move(mapping), bytes, ranks_);
  entries_.push_back({.begin = start, .bytes = bytes, .number = added_, .block = block});
  return block;
}

Blocks::Place Blocks::find(const void* data, size_t bytes) const {
  const auto* const begin = static_cast<const std::byte*>(data);
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_) {
    const bool inside = begin >= entry.begin && begin + bytes <= entry.begin + entry.bytes;
    if (std::shared_ptr<SharedBlock> block = inside ? entry.block.lock() : nullptr) {
      const auto offset = static_cast<uint64_t>(begin - entry.begin);
      return {.block = entry.number, .offset = offset, .keep = std::move(block)};
    }
  }
  return {};
}

}  // namespace argosy::transport
