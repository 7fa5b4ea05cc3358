#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/optim/optimizer.h"
#include "argosy/parallel/ddp/bucket_reduction.h"
#include "argosy/parallel/ddp/drift_check.h"
#include "argosy/parallel/ddp/finite_check.h"
#include "argosy/parallel/ddp/micro_batch.h"
#include "argosy/parallel/ddp/options.h"
#include "argosy/parallel/ddp/parameter_table.h"
#include "argosy/parallel/ddp/pass_counter.h"
#include "argosy/parallel/ddp/same_samples.h"

namespace argosy::parallel::ddp {

/// What a reducer finds out about its passes beside averaging: whether ranks are in step, hold the
/// same, train on different samples, and have finite gradients.
class PassChecks final {
 public:
  /// The table must outlive it.
  PassChecks(const ParameterTable& table, const comm::Group& group, const DdpOptions& options);

  /// Compares this optimizer's options too.
  void watch(const std::shared_ptr<optim::OptimizerImpl>& optimizer);
  /// Begins to count anew. All ranks must call it at the same point.
  void restart();

  /// Begins a pass whose gradients will be averaged: sets the place of its reductions.
  void begin(BucketReduction& reduction, const MicroBatch& micro_batch);
  /// Starts the comparisons of the pass, at its first bucket, and lets `reduction` wait for them.
  /// Collective. Without begin(), and later in the pass, it does nothing.
  void start(BucketReduction& reduction);
  /// Looks at a gradient before it is averaged. Errors: DataError under NonfiniteGradient::kStop.
  void look(size_t parameter, const at::Tensor& gradient, const Whose& whose);
  /// Likewise at a complete bucket.
  void look(const at::Tensor& flat);
  /// Ends the gradients of a virtual rank.
  void end_leaf();
  /// Compares those of all, which have ended. Collective.
  void compare_samples(BucketReduction& reduction);
  /// Call it when all comparisons have ended. Errors: UsageError for ranks that have drifted apart.
  void finish();

  [[nodiscard]] bool stops_at_nonfinite() const { return finite_.stops(); }
  [[nodiscard]] uint32_t update() const { return counter_.place().update; }  ///< 0: none has begun

 private:
  const ParameterTable& table_;
  comm::Group group_;
  std::chrono::milliseconds timeout_;
  PassCounter counter_{};
  FiniteCheck finite_;
  std::optional<DriftCheck> drift_;
  bool due_ = false;                    // comparisons of this pass have yet to start
  bool compares_ = false;               // they have started
  MicroBatch micro_batch_{};            // of this pass
  std::optional<SameSamples> samples_;  // until the first update has been looked at
};

}  // namespace argosy::parallel::ddp
