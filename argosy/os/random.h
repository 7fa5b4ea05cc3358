#pragma once

#include <cstddef>
#include <string>

namespace argosy::os {

/// `bytes` bytes from the kernel's generator, as hexadecimal digits: for secrets and names.
/// Errors: Error where the kernel has none.
[[nodiscard]] std::string random_hex(size_t bytes);

}  // namespace argosy::os
