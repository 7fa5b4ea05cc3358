#include "argosy/checkpoint/checksum.h"

#include <fmt/format.h>

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

}  // namespace argosy::checkpoint
