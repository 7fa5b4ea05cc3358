#pragma once

#include <vector>

#include "argosy/optim/optimizer.h"
#include "argosy/optim/rule.h"

namespace argosy::optim {

/// Errors: CheckpointError that lists everything in which `state` does not fit an optimizer of this
///   rule with these parameters and groups.
void check_loadable(const OptimizerState& state,
                    const Rule& rule,
                    const engine::NamedTensors& parameters,
                    const std::vector<GroupInfo>& groups);

}  // namespace argosy::optim
