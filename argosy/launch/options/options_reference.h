#pragma once

#include <string>

namespace argosy::launch {

/// Returns the text of docs/reference/launch_options.md.
[[nodiscard]] std::string options_reference();

}  // namespace argosy::launch
