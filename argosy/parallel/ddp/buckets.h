#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/parallel/ddp/shared_part.h"

namespace argosy::parallel::sharded {
class ShardedMemory;
}

namespace argosy::parallel::ddp {

/// The parameters that share each bucket, as indices in the order in which their gradients are
/// expected. Buckets are ordered by their expected completion, and every rank reduces them in this
/// order.
using BucketPlan = std::vector<std::vector<size_t>>;

struct BucketLimits {
  int64_t first_bytes = 0;  ///< of the first bucket of each dtype
  int64_t bytes = 0;        ///< of the others
};

/// Groups parameters, taken in `order` (a permutation of their indices), by dtype and device. A
/// bucket closes when it has reached its limit.
[[nodiscard]] BucketPlan plan_buckets(std::span<const at::Tensor> parameters,
                                      std::span<const size_t> order,
                                      const BucketLimits& limits);

/// Flat memory for the gradients of some parameters, and the gradients as views into it.
///
/// Each view has its parameter's sizes and, if the parameter is dense, its strides (channels_last
/// stays channels_last). It starts at a multiple of 64 bytes, and with several parts at a multiple
/// of optim::ShardedStep::kUnit elements; the gaps stay zero. The views are
/// plain tensors on shared storage, not autograd views, so libtorch's own `Optimizer::zero_grad()`,
/// which detaches in place, accepts them.
struct Bucket {
  std::vector<size_t> parameters{};
  at::Tensor flat{};
  std::vector<at::Tensor> views{};  ///< parallel to `parameters`
  std::vector<at::Tensor> parts{};  ///< `flat`, cut into equal parts, one for each rank
  std::shared_ptr<sharded::ShardedMemory> memory{};  ///< where a rank keeps its part only
  at::Tensor scratch{};       ///< kept for the communication hook between steps
  size_t ready_at_start = 0;  ///< see DdpBucketStats
};

/// Returns buckets filled with zeros, in memory from `allocate`: at most aligned_bytes(parameters).
/// With several `parts` there may be more zeros, so that they are equal.
[[nodiscard]] std::vector<Bucket> make_buckets(const BucketPlan& plan,
                                               std::span<const at::Tensor> parameters,
                                               const Allocate& allocate = ordinary_memory(),
                                               int parts = 1);

/// Gives the views their parameters' current strides and keeps their values.
void follow_layout(Bucket& bucket, std::span<const at::Tensor> parameters);

/// Returns a tensor with the sizes and strides of `like` in the storage of `flat`, from element
/// `offset` on. It is not an autograd view.
[[nodiscard]] at::Tensor view_in(const at::Tensor& flat, int64_t offset, const at::Tensor& like);

/// True if both refer to the same elements in the same layout.
[[nodiscard]] bool same_memory(const at::Tensor& a, const at::Tensor& b);

}  // namespace argosy::parallel::ddp
