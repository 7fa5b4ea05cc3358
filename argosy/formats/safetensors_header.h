#pragma once

#include <cstdint>
#include <string>

#include "argosy/formats/safetensors.h"

// Internal to the room.
namespace argosy::formats {

/// A file begins with the length of its header, little-endian.
inline constexpr int64_t kLengthBytes = 8;

/// Reads the JSON of a header that `data_bytes` of elements follow. The offsets become those of the
/// file.
/// Errors: DataError("formats.safetensors") with path; see SafetensorsFile.
/// Cost: memory of about three times the text; its numbers allocate nothing else.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(const std::string& text,
                                                         int64_t data_bytes,
                                                         const std::string& path);

}  // namespace argosy::formats
