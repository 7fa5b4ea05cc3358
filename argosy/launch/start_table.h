#pragma once

#include <string>

#include "argosy/launch/job.h"

namespace argosy::launch {

/// What the user reads before the ranks run: how many, of what, where their output goes; with
/// `everything` also each variable that they get (secrets left out). Lines that start with
/// "[launch]".
[[nodiscard]] std::string describe_start(const Job& job, bool everything);

}  // namespace argosy::launch
