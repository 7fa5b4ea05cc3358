#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace argosy::launch {

/// What `argosy logs` prints.
struct LogQuery {
  std::string folder{};      ///< the folder of a run; empty: the newest in runs/
  std::vector<int> ranks{};  ///< empty: all
  std::string pattern{};     ///< POSIX extended regular expression; empty: every line
  bool errors_only = false;  ///< standard error alone
};

/// Prints the lines of all nodes' combined logs to `out` in the order of their times. Returns how
/// many.
/// Errors: ConfigError when the folder does not exist, holds no combined log, or the expression is
/// bad.
int64_t print_logs(const LogQuery& query, std::FILE* out);

}  // namespace argosy::launch
