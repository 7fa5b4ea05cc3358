#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "argosy/engine/named.h"
#include "argosy/optim/optimizer.h"

// Internal to the room.
namespace argosy::optim {

/// The group of each parameter: 0, or 1 + the index of the one that claims it.
/// Errors: UsageError `[where] …` when two groups claim one, or a group's name or tensor meets
/// none.
[[nodiscard]] std::vector<std::size_t> assign_groups(const std::string& where,
                                                     const engine::NamedTensors& parameters,
                                                     const std::vector<ParamGroup>& groups);

}  // namespace argosy::optim
