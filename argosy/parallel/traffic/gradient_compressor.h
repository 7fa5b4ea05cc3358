#pragma once

#include <string>

#include "argosy/optim/optimizer.h"
#include "argosy/parallel/ddp/comm_hook.h"

namespace argosy::parallel {

/// A way to average gradients with less traffic that remembers something from step to step, such
/// as what it has not sent yet. compress() puts it between a wrapper and an optimizer: the wrapper
/// averages its buckets by reduce(), as by a communication hook, and the optimizer steps by step().
///
/// Not thread-safe: as the wrapper.
class GradientCompressor {
 public:
  GradientCompressor() = default;
  virtual ~GradientCompressor() = default;
  GradientCompressor(const GradientCompressor&) = delete;
  GradientCompressor& operator=(const GradientCompressor&) = delete;
  GradientCompressor(GradientCompressor&&) = delete;
  GradientCompressor& operator=(GradientCompressor&&) = delete;

  /// "powersgd": in DdpStats::comm_hook, and in front of the names of its state.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Averages a bucket. Contract: CommHook's.
  [[nodiscard]] virtual BucketWork reduce(GradBucket& bucket) = 0;
  /// Makes a step of `inner` by the averaged gradients.
  virtual void step(optim::OptimizerImpl& inner) = 0;
  /// Tells that no step follows for the gradients that were averaged since the last one, if any:
  /// the optimizer's zero_grad(), which also comes after each step.
  virtual void drop_update() {}
  /// Adds what it remembers to the optimizer's state. What ranks have of their own is one tensor
  /// [ranks, elements], of which each has its row.
  virtual void add_state(optim::OptimizerState& state) const = 0;
  /// Takes its state out of `state`. Without any there, the compressor begins anew.
  /// Errors: CheckpointError for the state of another number of ranks or of another model.
  virtual void take_state(optim::OptimizerState& state) = 0;
};

}  // namespace argosy::parallel
