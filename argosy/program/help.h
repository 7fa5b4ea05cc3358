#pragma once

#include <string>
#include <string_view>

// Internal to the room.
namespace argosy::program {

/// Text in lines of at most 80 columns; those that are too long are wrapped.
[[nodiscard]] std::string wrapped(std::string_view text);

/// "  left    text": the text wrapped, in lines that begin at column `indent`.
[[nodiscard]] std::string row(std::string_view left, std::string_view text, size_t indent);

}  // namespace argosy::program
