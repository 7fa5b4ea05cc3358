#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace argosy::rendezvous {

/// Any bytes as letters, digits and `-_.%` only, without a leading dot: "a/b" is "a%2Fb".
[[nodiscard]] std::string escape(std::string_view text);
/// The inverse; nullopt when `text` is not something that escape() returns.
[[nodiscard]] std::optional<std::string> unescape(std::string_view text);

/// The name of the file that stands for `key`: its escaped form, or, where that is longer than file
/// systems take (255 bytes), its beginning, '~' and a 128-bit hash. Such a file must say its key
/// itself; is_hashed() tells.
[[nodiscard]] std::string file_name(std::string_view key);
[[nodiscard]] bool is_hashed(std::string_view file_name);

}  // namespace argosy::rendezvous
