#pragma once

#include <string>
#include <string_view>

// Internal to the room.
namespace argosy::program {

/// Returns the text with long lines wrapped at 80 columns.
[[nodiscard]] std::string wrapped(std::string_view text);

/// Returns "  left    text". The text is wrapped, and its lines begin at column `indent`.
[[nodiscard]] std::string row(std::string_view left, std::string_view text, size_t indent);

}  // namespace argosy::program
