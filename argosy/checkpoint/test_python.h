#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace argosy::checkpoint::testing {

/// Returns `variable` of the environment, or the Python of a folder of the repository.
inline std::string python_of(const char* variable, const std::string& folder) {
  const char* given = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  return given != nullptr ? given : ARGOSY_GOLDEN_DIR "/../../" + folder + "/bin/python";
}

/// Returns the first Python that has all modules: PEERS or that of `make peers`, READERS or that of
/// `make readers`. Returns "" where none has.
inline std::string python_with(const std::vector<std::string>& modules) {
  constexpr const char* kHasAll =
      "import importlib.util, sys; sys.exit(None in map(importlib.util.find_spec, sys.argv[1:]))";
  for (const std::string& python :
       {python_of("PEERS", ".venv-peers"), python_of("READERS", ".venv-readers")}) {
    const std::string command =
        fmt::format("'{}' -c '{}' {} 2>/dev/null", python, kHasAll, fmt::join(modules, " "));
    if (std::system(command.c_str()) == 0) {  // NOLINT(concurrency-mt-unsafe)
      return python;
    }
  }
  return "";
}

}  // namespace argosy::checkpoint::testing
