#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace argosy::text {

/// Returns the character that stands for a byte in the files of byte-level BPE, as UTF-8: itself
/// where it can be printed, else one from U+0100 on. A space is "Ġ".
/// Source: Radford et al. 2019, encoder.py, bytes_to_unicode.
[[nodiscard]] const std::string& byte_character(unsigned char byte);

/// Returns the number of that character, by which the characters are ordered.
[[nodiscard]] char32_t byte_code_point(unsigned char byte);

/// Returns bytes as such files write them.
[[nodiscard]] std::string to_byte_characters(std::string_view bytes);

/// Returns the bytes for which `text` stands. nullopt: a character of it stands for no byte.
[[nodiscard]] std::optional<std::string> from_byte_characters(std::string_view text);

}  // namespace argosy::text
