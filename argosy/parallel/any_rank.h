#pragma once

#include "argosy/comm/group.h"
#include "argosy/optim/grad_scaler.h"

namespace argosy::parallel {

/// For optim::GradScaler::agree_by(): an update is skipped on all ranks of the group where one of
/// them has a gradient that is not finite. For gradients that are not the same everywhere; those
/// that DistributedDataParallel has averaged are, and need none of it.
///
///     scaler.agree_by(parallel::any_rank(group));
///
/// Collective: two numbers of each rank at each unscale_(), in whatever stage its gradients are.
[[nodiscard]] optim::GradScaler::Agreement any_rank(comm::Group group);

}  // namespace argosy::parallel
