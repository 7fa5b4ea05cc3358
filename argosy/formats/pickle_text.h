#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace argosy::formats {

/// Is this UTF-8 as Python's "surrogatepass" takes it?
[[nodiscard]] bool is_utf8(std::string_view text);

/// Bytes as the characters of the same numbers, in UTF-8: how protocol 2 writes bytes.
[[nodiscard]] std::string latin1_to_utf8(std::string_view bytes);
/// Back; nullopt where a character is beyond ff.
[[nodiscard]] std::optional<std::string> utf8_to_latin1(std::string_view text);

}  // namespace argosy::formats
