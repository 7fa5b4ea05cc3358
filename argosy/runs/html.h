#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace argosy::runs {

/// `text` as HTML shows it letter by letter, in elements and in quoted attributes. What is no
/// UTF-8, and control characters, become U+FFFD.
[[nodiscard]] std::string escaped(std::string_view text);

/// JSON within a <script> element: "<" cannot end it.
[[nodiscard]] std::string script_json(std::string_view json);

/// RFC 4648, with padding.
[[nodiscard]] std::string base64(std::span<const std::byte> bytes);

/// "1,234", "0.4312", "1.2e-05": four significant digits, and whole numbers whole.
[[nodiscard]] std::string shown_number(double value);

}  // namespace argosy::runs
