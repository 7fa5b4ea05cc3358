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

/// One word for weights: SHA-256 over their names, types, shapes and bytes, whatever file they came
/// from and in which order they stand there.
///
///     WeightsDigest digest;
///     for (…) digest.add({.name = …, .type = …, .shape = …, .bytes = …}, [&](auto out, auto from)
///     {…}); std::string word = digest.hex();
///
/// Source: of each tensor, in the order of the names' bytes: the name's length (u64), the name, the
/// type as safetensors say it and a zero byte, the number of dims (u64), each dim (u64), the
/// elements row-major; all little-endian.
class WeightsDigest final {
 public:
  /// Fills `out` with the bytes from `from` on.
  using Read = std::function<void(std::span<std::byte> out, int64_t from)>;

  void add(formats::SafetensorEntry entry, Read read);
  /// Reads all of it. 64 digits. Errors: CheckpointError for a name twice; those of the readers.
  [[nodiscard]] std::string hex() const;

 private:
  struct Item {
    formats::SafetensorEntry entry;
    Read read;
  };
  std::vector<Item> items_;
};

/// Of a file of safetensors, or of the part `model` of a checkpoint's folder.
/// Errors: CheckpointError and DataError with path; a checkpoint without a part `model`.
[[nodiscard]] std::string weights_hash(const std::string& path);

/// Is `path` one of these two?
[[nodiscard]] bool is_hashed_without_torch(const std::string& path);

}  // namespace argosy::checkpoint
