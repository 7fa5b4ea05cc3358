#pragma once

#include <string>
#include <vector>

#include "argosy/os/subprocess.h"

namespace argosy::launch {

/// Returns what an exit code usually means: " (not executable)". "": nothing in particular.
[[nodiscard]] std::string describe_code(int code);

/// Returns a sentence for people: what usually helps after such an end. It depends on how the rank
/// ended and on its last lines. "": no advice is known. `out_of_memory`: the kernel's killer ended
/// the rank.
[[nodiscard]] std::string advice_for(const os::Exit& exit,
                                     bool out_of_memory,
                                     const std::vector<std::string>& last_lines);

}  // namespace argosy::launch
