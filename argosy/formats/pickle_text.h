#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace argosy::formats {

/// True if this is UTF-8 as Python's "surrogatepass" takes it.
[[nodiscard]] bool is_utf8(std::string_view text);

/// Returns the characters with the numbers of `bytes`, in UTF-8. Protocol 2 writes bytes this way.
[[nodiscard]] std::string latin1_to_utf8(std::string_view bytes);
/// The inverse of latin1_to_utf8(). nullopt: a character is beyond 0xff.
[[nodiscard]] std::optional<std::string> utf8_to_latin1(std::string_view text);

}  // namespace argosy::formats
