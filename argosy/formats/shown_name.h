#pragma once

#include <string>
#include <string_view>

namespace argosy::formats {

/// A name that comes from a file, for a message: unprintable bytes as \xNN, cut where it is long.
[[nodiscard]] std::string shown_name(std::string_view name);

}  // namespace argosy::formats
