#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/parallel/ddp/buckets.h"
#include "argosy/parallel/ddp/options.h"
#include "argosy/parallel/ddp/parameter_table.h"
#include "argosy/parallel/ddp/stats.h"

namespace argosy::parallel::ddp {

/// The buckets of a wrapper, and where in them each parameter's gradient lies.
///
/// The first plan follows the reverse order of registration. rebuild() makes a second one, which
/// follows the order in which gradients arrived.
class BucketSet final {
 public:
  /// Collective where the ranks share memory. The table must outlive the set.
  BucketSet(const ParameterTable& table, const comm::Group& group, const DdpOptions& options);

  [[nodiscard]] size_t size() const { return buckets_.size(); }
  [[nodiscard]] Bucket& operator[](size_t bucket) { return buckets_[bucket]; }
  [[nodiscard]] const Bucket& operator[](size_t bucket) const { return buckets_[bucket]; }

  /// The number of parameters in each bucket.
  [[nodiscard]] std::vector<size_t> members() const;
  [[nodiscard]] size_t bucket_of(size_t parameter) const { return places_[parameter].bucket; }
  [[nodiscard]] const at::Tensor& view_of(size_t parameter) const {
    return buckets_[places_[parameter].bucket].views[places_[parameter].slot];
  }

  /// Copies the parameter's gradient into its bucket unless it lies there, and lets grad() be the
  /// view. Returns false if there is no gradient.
  /// Errors: UsageError for a gradient that is sparse or has another shape; it names the parameter.
  bool bring_in(size_t parameter);

  /// Appends to the order that rebuild() follows.
  void note_arrival(size_t parameter) { arrival_.push_back(static_cast<int64_t>(parameter)); }
  /// Collective. Plans again, in the order in which the gradients of `root` arrived, or in the old
  /// order if it has noted none. Returns whether the buckets are new ones. Gradients in old buckets
  /// keep that memory until bring_in() copies them.
  bool rebuild(int root);
  [[nodiscard]] bool rebuilt() const { return rebuilt_; }

  /// Gives views the strides that parameters have now. Gradients in buckets stay there.
  void follow_layout();

  /// Sets sizes and names of the buckets, the order of arrival and the count of copies.
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
  std::vector<Bucket> buckets_{};
  std::vector<Place> places_{};
  std::vector<int64_t> arrival_{};
  bool rebuilt_ = false;
  int64_t copied_ = 0;
};

}  // namespace argosy::parallel::ddp
