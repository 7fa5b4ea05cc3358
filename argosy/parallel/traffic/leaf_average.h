#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/collectives.h"
#include "argosy/comm/group.h"
#include "argosy/comm/work.h"
#include "argosy/parallel/ddp/comm_hook.h"
#include "argosy/parallel/traffic/rank_state.h"

// Internal to the room: averages over virtual ranks.
namespace argosy::parallel::traffic {

/// An average that is on its way: `result` is it when `work` has ended, on all ranks.
struct LeafAverage {
  comm::Work work{};
  at::Tensor result{};
};

/// Starts the average of flat tensors over the virtual ranks, with the same bits on any number of
/// processes. 16-bit values are summed in f32, and the result may be f32.
/// `leaves`: one for each virtual rank of this process, which it uses up. `like`: says size and
/// type where there is none. Collective.
[[nodiscard]] LeafAverage average_leaves(std::vector<at::Tensor> leaves,
                                         const at::Tensor& like,
                                         const Deal& deal,
                                         const comm::Group& group,
                                         comm::AllReduceOptions options = {});

/// Averages a bucket as it is.
[[nodiscard]] BucketWork average_bucket(const GradBucket& bucket, const Deal& deal);

}  // namespace argosy::parallel::traffic
