#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/engine/named.h"
#include "argosy/optim/sharded_step.h"
#include "argosy/parallel/ddp/buckets.h"
#include "argosy/parallel/ddp/options.h"
#include "argosy/parallel/sharded/memory_pool.h"
#include "argosy/parallel/sharded/state_files.h"

namespace argosy::parallel::ddp {

/// Lets each rank update its part of every bucket: the elements whose gradients a reduce-scatter
/// gave it. The parameters lie in flat memory as their gradients do, either whole on each rank, so
/// that an all-gather for each bucket hands the new values out, in place; or as parts in a pool,
/// which gathers a bucket when somebody uses a parameter.
class ShardedBuckets final : public optim::ShardedStep {
 public:
  /// Where ranks keep the values of parameters.
  struct Homes {
    /// Of the ranks that divide the values; nullptr: each rank has all.
    std::shared_ptr<sharded::MemoryPool> pool{};
    /// The ranks that keep the same part of the values, each of which updates a piece of that.
    comm::Group replicas{};
    /// Which of the equal pieces of a bucket each rank of the group updates; empty: that of its own
    /// number.
    std::vector<int> pieces{};
    InitializePart initialize{};  ///< instead of the values that the parameters have
    std::shared_ptr<const sharded::StateFiles> files{};  ///< for states; nullptr: in memory
    bool whole_gradients = false;                        ///< on each rank
  };
  /// Gives the parameters memory in this order, with their values. `timeout` applies to each
  /// operation; zero means the group's.
  ShardedBuckets(engine::NamedTensors parameters,
                 const BucketPlan& plan,
                 const comm::Group& group,
                 std::chrono::milliseconds timeout,
                 Homes homes);

  /// The same in another order. The optimizer has whole states meanwhile.
  void follow(const BucketPlan& plan);
  /// Call it after the parameters' strides changed in the same memory.
  void follow_layout();
  /// Gives the parameters memory of their own again if they are whole. Whatever is called
  /// afterwards throws.
  void leave() noexcept;
  /// Collective: makes all parameters whole, or parts again with what was written into them.
  void hold(bool whole);
  /// Calls `tell` where an update begins, for ranks that follow; empty: nobody is told.
  void tell_by(std::function<void()> tell) { tell_ = std::move(tell); }

  [[nodiscard]] IndexRange part_of(const at::Tensor& parameter) const override;
  [[nodiscard]] at::Tensor values_of(const at::Tensor& parameter, bool to_write) const override;
  [[nodiscard]] at::Tensor gradient_of(const at::Tensor& parameter) const override;
  [[nodiscard]] bool has_master(const at::Tensor& parameter) const override;
  [[nodiscard]] at::Tensor make_state(const at::Tensor& values) const override;
  [[nodiscard]] bool has_whole_gradients() const override { return homes_.whole_gradients; }
  void begin() override;
  void hand_out() override;
  void sum(std::vector<ExactSum>& sums) const override;
  [[nodiscard]] at::Tensor gather(const at::Tensor& parameter,
                                  const at::Tensor& part) const override;

 private:
  struct Place {
    std::size_t parameter = 0;
    std::size_t bucket = 0;
    std::size_t slot = 0;
    int64_t offset = 0;  ///< in the bucket, in elements
  };
  [[nodiscard]] const Place& place_of(const at::Tensor& parameter) const;
  void check_there() const;
  [[nodiscard]] at::ScalarType type_of_parts(const at::Tensor& parameter) const;
  void settle_in(std::size_t index, const at::Tensor& view, const Place& place);
  [[nodiscard]] int64_t piece_size(std::size_t bucket) const;
  [[nodiscard]] int64_t piece_of(int rank) const;
  [[nodiscard]] IndexRange part_of_rank(const at::Tensor& parameter, int rank) const;

  const engine::NamedTensors parameters_;
  const comm::Group group_;
  const std::chrono::milliseconds timeout_;
  const Homes homes_;
  bool left_ = false;
  std::function<void()> tell_{};
  std::vector<Bucket> values_{};
  std::unordered_map<const at::TensorImpl*, Place> places_{};  // of the parameters
};

}  // namespace argosy::parallel::ddp
