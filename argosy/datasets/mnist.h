#pragma once

#include <string>
#include <vector>

namespace argosy::datasets {

/// Returns "0 - zero" … in torchvision's spelling.
[[nodiscard]] const std::vector<std::string>& digit_names();

}  // namespace argosy::datasets
