#pragma once

#include <cstddef>
#include <string_view>

namespace argosy::text {

/// Returns the bytes of the UTF-8 character with which `text` begins. 0: it begins with none.
/// (Overlong forms, surrogates and numbers above 10FFFF are none.)
[[nodiscard]] size_t character_bytes(std::string_view text);

/// Returns the bytes that its first byte promises, at least 1 and at most text.size(), valid or
/// not. `text` is not empty.
[[nodiscard]] size_t promised_bytes(std::string_view text);

/// Returns how many bytes of characters with the property White_Space `text` begins with.
[[nodiscard]] size_t leading_space(std::string_view text);
/// Returns how many it ends with.
[[nodiscard]] size_t trailing_space(std::string_view text);

}  // namespace argosy::text
