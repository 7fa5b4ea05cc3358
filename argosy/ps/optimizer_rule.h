#pragma once

#include <memory>
#include <vector>

#include "argosy/optim/optimizer.h"
#include "argosy/ps/row_rule.h"

namespace argosy::ps {

/// Returns the rule by which an optimizer updates each of its parameters, in their order, for use
/// on servers: with the same bits. A row that it is used for is a parameter of its own, with its
/// own count of steps. Errors: UsageError for an optimizer that wraps another one, or clips
/// gradients: a server sees only a part of them.
[[nodiscard]] std::vector<std::shared_ptr<const RowRule>> rules_of(
    const optim::Optimizer& optimizer);

}  // namespace argosy::ps
