#pragma once

#include <string>
#include <vector>

namespace argosy::datasets {

/// "0 - zero" …, as torchvision spells them.
[[nodiscard]] const std::vector<std::string>& digit_names();

}  // namespace argosy::datasets
