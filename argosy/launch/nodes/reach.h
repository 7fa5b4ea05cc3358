#pragma once

#include <functional>
#include <string>
#include <vector>

#include "argosy/launch/nodes/job_plan.h"

namespace argosy::launch {

/// Checks whether nodes can be reached at the addresses that they gave. Node 0 tries all others,
/// and each other node tries node 0. Returns a line for people for each that cannot be reached; it
/// does not try names. It takes one second at most for each, three for all, and stops when `go_on`
/// returns false.
///
/// Ranks will connect to each other at these addresses, and would find out only at their own
/// deadline.
[[nodiscard]] std::vector<std::string> find_unreachable(const JobPlan& plan,
                                                        int self,
                                                        const std::function<bool()>& go_on);

}  // namespace argosy::launch
