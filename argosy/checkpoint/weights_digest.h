#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/formats/safetensors.h"

namespace argosy::checkpoint {

/// A SHA-256 over the names, types, shapes and bytes of weights. It does not depend on the file or
/// on their order there.
///
///     WeightsDigest digest;
///     for (…) digest.add({.name = …, .type = …, .shape = …, .bytes = …},
///                        [&](auto out, auto from) {…});
///     std::string word = digest.hex();
///
/// Each tensor adds, in the order of the names' bytes: the name's length (u64), the name,
/// safetensors' name of the type and a zero byte, the number of dims (u64), each dim (u64), and the
/// elements, row-major. All numbers are little-endian.
class WeightsDigest final {
 public:
  /// Fills `out` with the bytes from `from` on.
  using Read = std::function<void(std::span<std::byte> out, int64_t from)>;

  void add(formats::SafetensorEntry entry, Read read);
  /// Reads everything and returns 64 digits. Errors: CheckpointError for a name that comes twice;
  /// those of the readers.
  [[nodiscard]] std::string hex() const;

 private:
  struct Item {
    formats::SafetensorEntry entry;
    Read read;
  };
  std::vector<Item> items_;
};

/// Returns the hash of a file of safetensors, or of the part `model` of a checkpoint's folder.
/// Errors: CheckpointError and DataError with the path, also for a checkpoint without a part
/// `model`.
[[nodiscard]] std::string weights_hash(const std::string& path);

/// True if `path` is one of these two.
[[nodiscard]] bool is_hashed_without_torch(const std::string& path);

}  // namespace argosy::checkpoint
