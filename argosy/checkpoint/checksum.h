#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace argosy::checkpoint {

/// The XXH3 hash (64 bits) of bytes that come in pieces, as "xxh3:" and 16 digits. It finds damage,
/// not malice.
/// Cost: 10 GB/s and more, so a writer beside a training takes no noticeable time.
class Checksum final {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void update(std::span<const std::byte> bytes);
  /// Returns the hash of all bytes so far.
  [[nodiscard]] std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] std::string checksum_of(std::string_view bytes);

}  // namespace argosy::checkpoint
