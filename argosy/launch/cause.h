#pragma once

#include <string>
#include <vector>

#include "argosy/os/subprocess.h"

namespace argosy::launch {

/// What an exit code of its own usually means: " (not executable)"; "": nothing in particular.
[[nodiscard]] std::string describe_code(int code);

/// What usually helps after such an end, by how it ended and by what its last lines say: a sentence
/// for people; "": nothing that is known. `out_of_memory`: the kernel's killer ended it.
[[nodiscard]] std::string advice_for(const os::Exit& exit,
                                     bool out_of_memory,
                                     const std::vector<std::string>& last_lines);

}  // namespace argosy::launch
