#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "argosy/engine/named.h"
#include "argosy/optim/optimizer.h"

// Internal to the room.
namespace argosy::optim {

/// Returns the group of each parameter: 0, or 1 + the index of the group that claims it.
/// Errors: UsageError `[where] …` if two groups claim one parameter, or if a group's name or tensor
/// matches none.
[[nodiscard]] std::vector<std::size_t> assign_groups(const std::string& where,
                                                     const engine::NamedTensors& parameters,
                                                     const std::vector<ParamGroup>& groups);

}  // namespace argosy::optim
