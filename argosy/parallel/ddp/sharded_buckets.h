#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/engine/named.h"
#include "argosy/optim/sharded_step.h"
#include "argosy/parallel/ddp/buckets.h"

namespace argosy::parallel::ddp {

/// Lets each rank update its part of every bucket: the elements whose gradients a reduce-scatter
/// gave it. An all-gather for each bucket hands the new values out, in place, because the
/// parameters lie in flat memory as their gradients do.
class ShardedBuckets final : public optim::ShardedStep {
 public:
  /// Gives the parameters memory in this order, with their values. `timeout` applies to each
  /// operation; zero means the group's.
  ShardedBuckets(engine::NamedTensors parameters,
                 const BucketPlan& plan,
                 const comm::Group& group,
                 std::chrono::milliseconds timeout);

  /// The same in another order. The optimizer has whole states meanwhile.
  void follow(const BucketPlan& plan);
  /// Call it after the parameters' strides changed in the same memory.
  void follow_layout();
  /// Gives the parameters memory of their own again. Whatever is called afterwards throws.
  void leave() noexcept;

  [[nodiscard]] IndexRange part_of(const at::Tensor& parameter) const override;
  void hand_out() override;
  void sum(std::vector<ExactSum>& sums) const override;
  void gather(const std::vector<Shard>& shards, const Take& take) const override;

 private:
  struct Place {
    std::size_t parameter = 0;
    std::size_t bucket = 0;
    std::size_t slot = 0;
    int64_t offset = 0;  ///< in the bucket, in elements
  };
  [[nodiscard]] const Place& place_of(const at::Tensor& parameter) const;
  void check_there() const;

  const engine::NamedTensors parameters_;
  const comm::Group group_;
  const std::chrono::milliseconds timeout_;
  bool left_ = false;
  std::vector<Bucket> values_{};
  std::unordered_map<const void*, Place> places_{};  // by the address of the values
};

}  // namespace argosy::parallel::ddp
