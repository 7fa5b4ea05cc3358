#pragma once

#include <string>
#include <string_view>

namespace argosy::formats {

/// Returns a name from a file in a form for messages: unprintable bytes become \xNN, and a long
/// name is cut.
[[nodiscard]] std::string shown_name(std::string_view name);

}  // namespace argosy::formats
