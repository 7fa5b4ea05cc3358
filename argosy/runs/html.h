#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace argosy::runs {

/// Returns `text` so that HTML shows it letter by letter, in elements and in quoted attributes.
/// Bytes that are not UTF-8, and control characters, become U+FFFD.
[[nodiscard]] std::string escaped(std::string_view text);

/// Returns JSON for a <script> element, in which no "<" can end the element.
[[nodiscard]] std::string script_json(std::string_view json);

/// Returns base64 by RFC 4648, with padding.
[[nodiscard]] std::string base64(std::span<const std::byte> bytes);

/// Returns "1,234", "0.4312" or "1.2e-05": four significant digits, and whole numbers in full.
[[nodiscard]] std::string shown_number(double value);

}  // namespace argosy::runs
