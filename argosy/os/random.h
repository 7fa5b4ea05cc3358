#pragma once

#include <cstddef>
#include <string>

namespace argosy::os {

/// Returns `bytes` bytes from the kernel's generator as hexadecimal digits, for secrets and names.
/// Errors: Error when the kernel has no generator.
[[nodiscard]] std::string random_hex(size_t bytes);

}  // namespace argosy::os
