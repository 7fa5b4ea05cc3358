#include "argosy/checkpoint/block_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/checkpoint/checksum.h"

namespace argosy::checkpoint {
namespace {

[[noreturn]] void fail_file(const std::string& path, const std::string& what) {
  throw CheckpointError("checkpoint.load", what, {path, {}});
}

}  // namespace

BlockReader::BlockReader(std::string path, ManifestFile known)
    : path_(std::move(path)), known_(std::move(known)) {
  auto fd = os::open_file(path_, O_RDONLY | O_NONBLOCK);
  if (!fd.ok()) {
    fail_file(path_, "cannot read: " + errno_message(fd.failure().error_number));
  }
  fd_ = std::move(*fd);
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size != known_.bytes) {
    fail_file(path_,
              fmt::format("expected {} bytes, got {}. Take another checkpoint",
                          known_.bytes,
                          static_cast<int64_t>(info.st_size)));
  }
  if (!known_.blocks.empty()) {
    return;
  }
  FileChecksums now;
  block_.resize(static_cast<size_t>(kBlockBytes));
  for (int64_t at = 0; at < known_.bytes; at += kBlockBytes) {
    const auto piece = std::span(block_).first(
        static_cast<size_t>(std::min<int64_t>(kBlockBytes, known_.bytes - at)));
    read_unchecked(at, piece);
    now.update(piece);
  }
  if (now.text() != known_.checksum) {
    fail_file(path_,
              fmt::format("damaged: expected the checksum {}, got {}. Take another checkpoint",
                          known_.checksum,
                          now.text()));
  }
  // What is read from now on has these blocks, or was changed since.
  known_.blocks = now.blocks().empty() ? now.text().substr(now.text().find(':') + 1) : now.blocks();
}

void BlockReader::read(int64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const int64_t block = offset / kBlockBytes;
    const int64_t within = offset % kBlockBytes;
    const int64_t size = size_of(block);
    if (within >= size) {
      fail_file(path_, fmt::format("asked for byte {} of {}", offset, known_.bytes));
    }
    const auto piece =
        out.first(static_cast<size_t>(std::min<int64_t>(std::ssize(out), size - within)));
    if (std::ssize(piece) == size && block != loaded_) {
      read_unchecked(offset, piece);
      check_block(block, piece);
    } else {
      std::ranges::copy(load(block).subspan(static_cast<size_t>(within), piece.size()),
                        piece.begin());
    }
    offset += std::ssize(piece);
    out = out.subspan(piece.size());
  }
}

int64_t BlockReader::size_of(int64_t block) const {
  return std::clamp<int64_t>(known_.bytes - block * kBlockBytes, 0, kBlockBytes);
}

std::span<const std::byte> BlockReader::load(int64_t block) {
  if (block != loaded_) {
    loaded_ = -1;
    block_.resize(static_cast<size_t>(size_of(block)));
    read_unchecked(block * kBlockBytes, block_);
    check_block(block, block_);
    loaded_ = block;
  }
  return block_;
}

void BlockReader::read_unchecked(int64_t offset, std::span<std::byte> out) const {
  const auto count = os::read_at(fd_.get(), out, offset);
  if (!count.ok()) {
    fail_file(path_, "cannot read: " + errno_message(count.failure().error_number));
  }
  if (*count != out.size()) {
    fail_file(path_, "it became shorter while it was read. Take another checkpoint");
  }
}

void BlockReader::check_block(int64_t block, std::span<const std::byte> bytes) const {
  const std::string digits = block_digits(bytes);
  const size_t at = static_cast<size_t>(block) * kBlockDigits;
  if (known_.blocks.compare(std::min(at, known_.blocks.size()), kBlockDigits, digits) != 0) {
    fail_file(path_,
              fmt::format("damaged: bytes {} to {} are not those that were written (expected the "
                          "hash {}, got {}). Take another checkpoint",
                          block * kBlockBytes,
                          block * kBlockBytes + std::ssize(bytes) - 1,
                          known_.blocks.substr(std::min(at, known_.blocks.size()), kBlockDigits),
                          digits));
  }
}

}  // namespace argosy::checkpoint
