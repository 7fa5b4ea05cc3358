#pragma once

#include <string>

#include "argosy/launch/job.h"

namespace argosy::launch {

/// What the table before the ranks' output shows.
enum class StartDetail {
  kSummary,      ///< the number of ranks, their program and where their output goes
  kEnvironment,  ///< also shows each variable that the ranks get, without secrets
};

/// Returns what the user reads before the ranks run, as lines that start with "[launch]".
[[nodiscard]] std::string describe_start(const Job& job, StartDetail detail);

}  // namespace argosy::launch
