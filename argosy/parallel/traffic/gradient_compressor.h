#pragma once

#include <memory>
#include <string>

#include "argosy/comm/collectives.h"
#include "argosy/optim/optimizer.h"
#include "argosy/parallel/ddp/comm_hook.h"

namespace argosy::parallel {

/// A way to average gradients with less traffic that remembers something from step to step, such
/// as what it has not sent yet. compress() puts it between a wrapper and an optimizer: the wrapper
/// averages its buckets by reduce(), as by a communication hook, and the optimizer steps by step().
/// What is remembered belongs to a virtual rank, of which a process may have several, or none.
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
  /// Tells which virtual ranks the processes have: before the first bucket, and where that changes.
  /// Errors: UsageError where it cannot follow. Without an override: if processes have others than
  /// one each.
  virtual void deal_to(const std::shared_ptr<const comm::LeafDeal>& deal);
  /// Averages a bucket over the virtual ranks: GradBucket::gradients_of() has what each one of this
  /// process brings. Contract: CommHook's.
  [[nodiscard]] virtual BucketWork reduce(GradBucket& bucket) = 0;
  /// Makes a step of `inner` by the averaged gradients.
  virtual void step(optim::OptimizerImpl& inner) = 0;
  /// Tells that no step follows for the gradients that were averaged since the last one, if any:
  /// the optimizer's zero_grad(), which also comes after each step.
  virtual void drop_update() {}
  /// Adds what it remembers to the optimizer's state. What virtual ranks have of their own is one
  /// tensor [virtual ranks, elements], of which each process has its rows.
  virtual void add_state(optim::OptimizerState& state) const = 0;
  /// Takes its state out of `state`. Without any there, the compressor begins anew.
  /// Errors: CheckpointError for the state of other virtual ranks or of another model.
  virtual void take_state(optim::OptimizerState& state) = 0;
};

}  // namespace argosy::parallel
