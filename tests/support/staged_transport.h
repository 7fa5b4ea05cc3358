#pragma once

#include <memory>

#include "argosy/transport/transport.h"

namespace argosy::test {

/// A transport of the memory of devices, for tests that have the host's: it copies what an
/// operation gets to the device and what comes out of it back, and returns when the device is done.
[[nodiscard]] std::unique_ptr<transport::Transport> staged(
    std::unique_ptr<transport::Transport> on_device);

}  // namespace argosy::test
