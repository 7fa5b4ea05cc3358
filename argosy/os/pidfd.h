#pragma once

#include "argosy/base/result.h"
#include "argosy/os/fd.h"

namespace argosy::os {

/// Returns a descriptor of this process. Send it to others, so that they can watch the process.
/// Errors: ENOSYS before Linux 5.3; EPERM in some sandboxes.
[[nodiscard]] Result<UniqueFd> own_pidfd();

/// True if the process has ended, whether it is reaped or not.
[[nodiscard]] bool has_ended(int pidfd);

}  // namespace argosy::os
