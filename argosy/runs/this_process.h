#pragma once

#include <map>
#include <string>
#include <vector>

#include "argosy/runs/run_config.h"

// Internal to the room: what RunConfig::capture() records of this process and where it runs.
namespace argosy::runs {

/// Returns the command line as the user typed it.
[[nodiscard]] std::vector<std::string> own_command();
/// Returns the variables that may change a training, with secrets hidden.
[[nodiscard]] std::map<std::string, std::string> environment_that_matters();
[[nodiscard]] RunHost this_host();
/// Returns the state of the git repository around the current folder.
[[nodiscard]] RunSources git_state();

}  // namespace argosy::runs
