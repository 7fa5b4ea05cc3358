#pragma once

#include <string>
#include <vector>

namespace argosy::runs {

/// `argosy runs`: the words after it. Returns the exit code: 0 done, 1 it cannot be done.
/// Errors: UsageError for what was asked wrongly; DataError for files.
[[nodiscard]] int run_command(const std::vector<std::string>& args);

}  // namespace argosy::runs
