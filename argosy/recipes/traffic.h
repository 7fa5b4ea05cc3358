#pragma once

#include <functional>
#include <string>
#include <vector>

#include "argosy/fleet/strategy.h"
#include "argosy/optim/optimizer.h"
#include "argosy/recipes/row.h"
#include "argosy/recipes/spec.h"

namespace argosy::recipes {

struct TrafficEntry {
  TableRow row{};
  /// Switches it on.
  std::function<void(const Values& values, fleet::DistributedStrategy& strategy)> use{};
  /// Throws for an optimizer that it does not go with. Empty: it goes with any.
  std::function<void(const optim::OptimizerImpl& optimizer)> check{};
};

/// Returns all ways to save traffic by name; "none" is the first.
[[nodiscard]] const std::vector<TrafficEntry>& traffic_ways();

/// Switches on what `text` names, "diloco:sync_every=100".
/// Errors: UsageError when there is no such way or option.
void use_traffic(const std::string& text, fleet::DistributedStrategy& strategy);

/// Says before the job whether what `text` names goes with an optimizer. Errors: UsageError.
void check_traffic(const std::string& text, const optim::Optimizer& optimizer);

}  // namespace argosy::recipes
