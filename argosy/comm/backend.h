#pragma once

#include <string>

#include "argosy/comm/init.h"

namespace argosy::comm {

/// How transports of this backend are made. "auto" is gloo.
/// Errors: UsageError listing what exists.
[[nodiscard]] TransportFactory find_backend(const std::string& name);

}  // namespace argosy::comm
