#pragma once

#include <vector>

#include "apps/doctor/finding.h"

namespace argosy::doctor {

/// Interfaces, the host's name, connections to ourselves through each interface, the store.
[[nodiscard]] std::vector<Finding> network_findings();

}  // namespace argosy::doctor
