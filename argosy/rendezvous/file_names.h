#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace argosy::rendezvous {

/// Returns any bytes as letters, digits and `-_.%` only, without a leading dot: "a/b" becomes
/// "a%2Fb".
[[nodiscard]] std::string escape(std::string_view text);
/// Returns the text that escape() was given. nullopt: escape() never returns `text`.
[[nodiscard]] std::optional<std::string> unescape(std::string_view text);

/// Returns the name of the file that stands for `key`: the escaped key. If that is longer than file
/// systems allow (255 bytes), the name is its beginning, '~' and a 128-bit hash. is_hashed() tells;
/// such a file must hold its key.
[[nodiscard]] std::string file_name(std::string_view key);
[[nodiscard]] bool is_hashed(std::string_view file_name);

}  // namespace argosy::rendezvous
