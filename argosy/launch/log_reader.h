#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace argosy::launch {

/// What `argosy logs` was asked for.
struct LogQuery {
  std::string folder{};      ///< of a run; empty: the newest in runs/
  std::vector<int> ranks{};  ///< empty: all
  std::string pattern{};     ///< POSIX extended regular expression; empty: every line
  bool errors_only = false;  ///< standard error alone
};

/// Prints the lines of all nodes' combined logs in the order of their times to `out`; how many.
/// Errors: ConfigError: no such folder, none of its files is a combined log, a bad expression.
int64_t print_logs(const LogQuery& query, std::FILE* out);

}  // namespace argosy::launch
