#pragma once

#include <cstdint>
#include <optional>

namespace argosy::runs {

/// Returns when the process started, in the kernel's clock ticks since its own start. nullopt:
/// there is no such process, or it has ended and its parent has not reaped it. Source: proc(5),
/// fields 3 and 22 of stat.
[[nodiscard]] std::optional<int64_t> process_start(int64_t pid);

}  // namespace argosy::runs
