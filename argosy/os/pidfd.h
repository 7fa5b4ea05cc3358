#pragma once

#include "argosy/base/result.h"
#include "argosy/os/fd.h"

namespace argosy::os {

/// This process, for others to watch: a descriptor that they may be sent. Errors: ENOSYS before
/// Linux 5.3; EPERM in some sandboxes.
[[nodiscard]] Result<UniqueFd> own_pidfd();

/// Whether the process has ended, reaped or not.
[[nodiscard]] bool has_ended(int pidfd);

}  // namespace argosy::os
