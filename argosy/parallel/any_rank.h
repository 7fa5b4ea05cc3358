#pragma once

#include "argosy/comm/group.h"
#include "argosy/optim/grad_scaler.h"

namespace argosy::parallel {

/// Returns a function for optim::GradScaler::agree_by() that makes all ranks of the group skip an
/// update if one of them has a gradient that is not finite. Use it for gradients that differ
/// between ranks. Gradients that DistributedDataParallel has averaged do not need it.
///
///     scaler.agree_by(parallel::any_rank(group));
///
/// Collective: exchanges two numbers per rank at each unscale_(), whatever the state of its
/// gradients.
[[nodiscard]] optim::GradScaler::Agreement any_rank(comm::Group group);

}  // namespace argosy::parallel
