#include "argosy/checkpoint/checksum.h"

#include <fmt/format.h>

#include <algorithm>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace argosy::checkpoint {

struct Checksum::State {
  XXH3_state_t xxh;
};

Checksum::Checksum() : state_(std::make_unique<State>()) {
  XXH3_64bits_reset(&state_->xxh);
}

Checksum::~Checksum() = default;

void Checksum::update(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size());
}

std::string Checksum::text() const {
  return fmt::format("xxh3:{:016x}", XXH3_64bits_digest(&state_->xxh));
}

std::string checksum_of(std::string_view bytes) {
  Checksum checksum;
  checksum.update(std::as_bytes(std::span(bytes)));
  return checksum.text();
}

std::string block_digits(std::span<const std::byte> block) {
  return fmt::format("{:016x}", XXH3_64bits(block.data(), block.size()));
}

void FileChecksums::update(std::span<const std::byte> bytes) {
  all_.update(bytes);
  constexpr auto kBlock = static_cast<size_t>(kBlockBytes);
  while (!bytes.empty()) {
    if (open_.empty() && bytes.size() >= kBlock) {
      digits_ += block_digits(bytes.first(kBlock));
      bytes = bytes.subspan(kBlock);
      continue;
    }
    const auto piece = bytes.first(std::min(bytes.size(), kBlock - open_.size()));
    open_.insert(open_.end(), piece.begin(), piece.end());
    bytes = bytes.subspan(piece.size());
    if (open_.size() == kBlock) {
      digits_ += block_digits(open_);
      open_.clear();
    }
  }
}

std::string FileChecksums::blocks() const {
  const std::string all = open_.empty() ? digits_ : digits_ + block_digits(open_);
  return all.size() <= kBlockDigits ? "" : all;
}

}  // namespace argosy::checkpoint
