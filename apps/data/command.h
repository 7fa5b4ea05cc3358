#pragma once

#include <string>
#include <vector>

namespace argosy::datatool {

/// The commands of `argosy data`, one file each. `args` follow the command's name.
///
/// They return the exit code: 0, or 1 when verify found something missing or damaged.
/// Errors: UsageError and ConfigError for the arguments, DataError for files.
[[nodiscard]] int run_fetch(const std::vector<std::string>& args);
[[nodiscard]] int run_verify(const std::vector<std::string>& args);
[[nodiscard]] int run_info(const std::vector<std::string>& args);
[[nodiscard]] int run_pack(const std::vector<std::string>& args);
[[nodiscard]] int run_criteo(const std::vector<std::string>& args);

}  // namespace argosy::datatool
