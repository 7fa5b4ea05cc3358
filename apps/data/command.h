#pragma once

#include <string>
#include <vector>

namespace argosy::datatool {

/// The command `argosy data`: fetch, verify, info, pack. `args` follow the word `data`.
///
/// Returns the exit code: 0; 1 where verify found something missing or damaged.
/// Errors: UsageError and ConfigError for what was asked, DataError for files.
[[nodiscard]] int run(const std::vector<std::string>& args);

/// Its parts, one file each. `args` follow the part's name.
[[nodiscard]] int run_fetch(const std::vector<std::string>& args);
[[nodiscard]] int run_verify(const std::vector<std::string>& args);
[[nodiscard]] int run_info(const std::vector<std::string>& args);
[[nodiscard]] int run_pack(const std::vector<std::string>& args);

}  // namespace argosy::datatool
