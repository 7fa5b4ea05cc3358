#pragma once

#include <string>
#include <vector>

namespace argosy::doctor {

/// The command `argosy doctor`, which says what works on this machine and what does not.
///
/// `args` follow the command's name. Returns the exit code: 0, or 1 if something is bad.
/// Errors: UsageError; with --nodes those of a rank that cannot join its job.
[[nodiscard]] int run(const std::vector<std::string>& args);

}  // namespace argosy::doctor
