#pragma once

#include <functional>
#include <string>
#include <vector>

#include "argosy/launch/nodes/job_plan.h"

namespace argosy::launch {

/// Tries whether nodes can be reached at the addresses that they gave: node 0 tries all others,
/// each other one node 0. A line for people for each that cannot; names are not tried. One second
/// at most for each, three for all, and no longer than `go_on` says true.
///
/// Ranks will connect to each other there, and would only find out at their own deadline.
[[nodiscard]] std::vector<std::string> find_unreachable(const JobPlan& plan,
                                                        int self,
                                                        const std::function<bool()>& go_on);

}  // namespace argosy::launch
