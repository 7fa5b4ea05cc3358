#pragma once

#include <cstdint>
#include <string>

#include "argosy/formats/safetensors.h"

// Internal to the room.
namespace argosy::formats {

/// A file begins with the length of its header, little-endian.
inline constexpr int64_t kLengthBytes = 8;

/// The JSON of a header that `data_bytes` of elements follow. Offsets come out as those of a file.
/// Errors: DataError("formats.safetensors") with path, see SafetensorsFile.
/// Cost: memory about three times the text; nothing else is believed from it.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(const std::string& text,
                                                         int64_t data_bytes,
                                                         const std::string& path);

}  // namespace argosy::formats
