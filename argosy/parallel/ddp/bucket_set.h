#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/parallel/ddp/buckets.h"
#include "argosy/parallel/ddp/options.h"
#include "argosy/parallel/ddp/parameter_table.h"
#include "argosy/parallel/ddp/stats.h"
#include "argosy/parallel/sharded/memory_pool.h"

namespace argosy::parallel::ddp {

/// The buckets of a wrapper, and the place of each parameter's gradient in them.
///
/// The first plan follows the reverse order of registration. rebuild() makes a second one in the
/// order in which gradients arrived.
class BucketSet final {
 public:
  /// Collective if the ranks share memory. The table must outlive the set.
  BucketSet(const ParameterTable& table, const comm::Group& group, const DdpOptions& options);
  /// With a plan that stays, and cut if there is a pool.
  BucketSet(const ParameterTable& table,
            const comm::Group& group,
            const DdpOptions& options,
            BucketPlan plan,
            std::shared_ptr<sharded::MemoryPool> pool);

  [[nodiscard]] size_t size() const { return buckets_.size(); }
  [[nodiscard]] Bucket& operator[](size_t bucket) { return buckets_[bucket]; }
  [[nodiscard]] const Bucket& operator[](size_t bucket) const { return buckets_[bucket]; }

  /// Returns the number of parameters in each bucket.
  [[nodiscard]] std::vector<size_t> members() const;
  [[nodiscard]] size_t bucket_of(size_t parameter) const { return places_[parameter].bucket; }
  [[nodiscard]] const at::Tensor& view_of(size_t parameter) const {
    return buckets_[places_[parameter].bucket].views[places_[parameter].slot];
  }

  /// Copies the parameter's gradient into its bucket unless it lies there, and makes grad() the
  /// view of it. Returns false if there is no gradient.
  /// Errors: UsageError naming the parameter if its gradient is sparse or has another shape.
  bool bring_in(size_t parameter);

  /// Appends to the order that rebuild() follows.
  void note_arrival(size_t parameter) { arrival_.push_back(static_cast<int64_t>(parameter)); }
  /// Makes a new plan in the order in which the gradients of `root` arrived, or in the old order if
  /// it has noted none. Returns true if the buckets are new. Gradients in old buckets keep that
  /// memory until bring_in() copies them. Collective.
  bool rebuild(int root);
  [[nodiscard]] bool rebuilt() const { return rebuilt_; }
  [[nodiscard]] const BucketPlan& plan() const { return plan_; }

  /// Lets each rank keep its part of the buckets only, in this pool; nullptr: all of them again.
  /// Gradients keep the old memory until bring_in() copies them. Collective.
  void cut(const std::shared_ptr<sharded::MemoryPool>& pool);
  [[nodiscard]] bool is_cut() const { return pool_ != nullptr; }
  /// nullptr: they are not cut.
  [[nodiscard]] const std::shared_ptr<sharded::MemoryPool>& pool() const { return pool_; }
  /// Returns the flat memory of a bucket that is open.
  [[nodiscard]] at::Tensor whole(size_t bucket) const;
  /// Makes the memory of a parameter's bucket whole, before something is written to its view.
  void open(size_t parameter);
  /// Makes gradients whole that lie in cut buckets, until their next reduction: what each rank adds
  /// to them is its own. Collective if there are any.
  void hold_gradients();
  /// Returns those elements of a parameter's place that this rank keeps, flat; the view where it
  /// keeps all.
  [[nodiscard]] at::Tensor kept_part(size_t parameter) const;
  /// Returns the same elements of a tensor in the parameter's layout.
  [[nodiscard]] at::Tensor kept_part_of(size_t parameter, const at::Tensor& like) const;

  /// Gives the views the parameters' current strides. Gradients in buckets stay there.
  void follow_layout();

  /// Sets the buckets' sizes and names, the order of arrival and the count of copies.
  void fill(DdpStats& stats) const;

 private:
  struct Place {
    size_t bucket = 0;
    size_t slot = 0;
  };

  [[nodiscard]] BucketPlan planned(const std::vector<size_t>& order) const;
  void use(BucketPlan plan);

  const ParameterTable& table_;
  comm::Group group_;
  DdpOptions options_;
  BucketPlan plan_{};
  std::shared_ptr<sharded::MemoryPool> pool_{};  // where the buckets are cut
  std::vector<Bucket> buckets_{};
  std::vector<Place> places_{};
  std::vector<int64_t> arrival_{};
  bool rebuilt_ = false;
  int64_t copied_ = 0;
};

}  // namespace argosy::parallel::ddp
