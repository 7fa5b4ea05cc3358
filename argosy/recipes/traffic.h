#pragma once

#include <functional>
#include <string>
#include <vector>

#include "argosy/fleet/strategy.h"
#include "argosy/recipes/row.h"
#include "argosy/recipes/spec.h"

namespace argosy::recipes {

struct TrafficEntry {
  TableRow row{};
  /// Switches it on.
  std::function<void(const Values& values, fleet::DistributedStrategy& strategy)> use{};
};

/// Returns all ways to save traffic by name; "none" is the first.
[[nodiscard]] const std::vector<TrafficEntry>& traffic_ways();

/// Switches on what `text` names, "diloco:sync_every=100".
/// Errors: UsageError when there is no such way or option.
void use_traffic(const std::string& text, fleet::DistributedStrategy& strategy);

}  // namespace argosy::recipes
