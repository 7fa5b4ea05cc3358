#pragma once

#include <vector>

#include "apps/doctor/finding.h"

namespace argosy::doctor {

/// Checks the interfaces, the host's name, connections to ourselves through each interface, and the
/// store.
[[nodiscard]] std::vector<Finding> network_findings();

}  // namespace argosy::doctor
