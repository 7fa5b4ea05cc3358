#pragma once

#include <functional>
#include <vector>

#include "argosy/optim/optimizer.h"
#include "argosy/optim/rule.h"

namespace argosy::optim {

/// Errors: CheckpointError that lists everything in which `state` does not fit an optimizer of this
///   rule with these parameters and groups. `has_master`: whether a parameter is rounded from one,
///   which may be a state of it.
void check_loadable(const OptimizerState& state,
                    const Rule& rule,
                    const engine::NamedTensors& parameters,
                    const std::vector<GroupInfo>& groups,
                    const std::function<bool(const at::Tensor& parameter)>& has_master);

/// The name of that state.
inline constexpr const char* kMaster = "master";

}  // namespace argosy::optim
