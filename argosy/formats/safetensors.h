#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/os/fd.h"

namespace argosy::formats {

enum class SafetensorType : uint8_t { kBool, kU8, kI8, kI16, kI32, kI64, kF16, kBF16, kF32, kF64 };

/// Returns the name in the files: "BOOL", "F32", "BF16".
[[nodiscard]] std::string_view to_string(SafetensorType type);
/// Returns the type of that name. nullopt for the types that are not read (complex numbers, floats
/// of 8 bits, unsigned ones of 16).
[[nodiscard]] std::optional<SafetensorType> safetensor_type(std::string_view name);
[[nodiscard]] int64_t element_bytes(SafetensorType type);

/// A tensor in a file: row-major, little-endian.
struct SafetensorEntry {
  std::string name{};
  SafetensorType type = SafetensorType::kF32;
  std::vector<int64_t> shape{};  ///< {} is a single number
  int64_t offset = 0;            ///< position of its first byte in the file
  int64_t bytes = 0;
};

/// The header of a file, which stands before the tensors.
struct SafetensorsHeader {
  using Metadata = std::vector<std::pair<std::string, std::string>>;

  std::vector<SafetensorEntry> entries{};  ///< in the order of the header
  Metadata metadata{};
  int64_t data_offset = 0;  ///< where the tensors begin
  int64_t file_bytes = 0;
};

/// A safetensors file. It reads only what is asked for.
///
///     SafetensorsFile file("model.safetensors");
///     for (const SafetensorEntry& entry : file.header().entries) file.read(entry, buffer);
///
/// Not thread-safe.
/// Errors: DataError with path. From the constructor: the file cannot be opened, is truncated, or
/// its header is invalid (length, JSON, names twice, types, shapes whose bytes are not those of the
/// offsets, offsets that overlap, leave holes or end elsewhere than the file). From read(): the
/// system's words.
/// Cost: the constructor reads the header only, at most 100 MB as in the reference.
/// Source: https://github.com/huggingface/safetensors, safetensors/src/tensor.rs of 0.5.
class SafetensorsFile final {
 public:
  explicit SafetensorsFile(std::string path);

  [[nodiscard]] const SafetensorsHeader& header() const { return header_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Reads the elements of one entry, from their byte `from`, as many as `out` takes.
  void read(const SafetensorEntry& entry, std::span<std::byte> out, int64_t from = 0) const;

 private:
  std::string path_;
  os::UniqueFd fd_{};
  SafetensorsHeader header_{};
};

/// Returns the header of an open file. Errors: DataError with `path`; as SafetensorsFile's.
[[nodiscard]] SafetensorsHeader read_safetensors_header(int fd, const std::string& path);

/// True if a file of this size that begins with `head` (9 bytes or more) looks like one.
[[nodiscard]] bool looks_like_safetensors(std::span<const uint8_t> head, int64_t file_bytes);

/// The bytes up to `data_offset`, and the place of each tensor.
struct SafetensorsLayout {
  std::string head{};
  SafetensorsHeader header{};
};

/// Plans a file of these entries and sets their offsets and bytes. Names keep their order. Elements
/// are sorted by falling size of their type, so that each is aligned as Python's readers want it.
/// Errors: DataError without path when a name stands twice, is not UTF-8, or is "__metadata__".
[[nodiscard]] SafetensorsLayout lay_out_safetensors(
    std::vector<SafetensorEntry> entries, const SafetensorsHeader::Metadata& metadata = {});

}  // namespace argosy::formats
