#pragma once

#include <string>
#include <vector>

#include "argosy/launch/nodes/job_plan.h"

namespace argosy::launch {

/// Tries whether nodes can be reached at the addresses that they gave: node 0 tries all others,
/// each other one node 0. A line for people for each that cannot, after a second or so.
///
/// Ranks will connect to each other there, and would only find out at their own deadline.
[[nodiscard]] std::vector<std::string> find_unreachable(const JobPlan& plan, int self);

}  // namespace argosy::launch
