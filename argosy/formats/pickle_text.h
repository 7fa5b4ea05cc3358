#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace argosy::formats {

/// Is this UTF-8 as Python's "surrogatepass" takes it?
[[nodiscard]] bool is_utf8(std::string_view text);

/// Appends a code point (up to 10ffff) as UTF-8.
void append_utf8(std::string& text, uint32_t code);

/// Bytes as the characters of the same numbers, in UTF-8: how protocol 2 writes bytes.
[[nodiscard]] std::string latin1_to_utf8(std::string_view bytes);
/// Back; nullopt where a character is beyond ff.
[[nodiscard]] std::optional<std::string> utf8_to_latin1(std::string_view text);

/// Protocol 0's str: Latin-1 with \uXXXX and \UXXXXXXXX. nullopt: it is not.
[[nodiscard]] std::optional<std::string> decode_raw_unicode_escape(std::string_view line);
/// Protocol 0's Python 2 str: a literal in quotes with \n, \\, \x41, \101 and the like.
[[nodiscard]] std::optional<std::string> decode_string_literal(std::string_view line);

}  // namespace argosy::formats
