#pragma once

#include <chrono>
#include <cstdint>

#include "argosy/engine/memory_format.h"

namespace argosy::parallel {

/// How DistributedDataParallel reduces gradients. Equal on all ranks; construction checks that.
///
/// Gradients are always views into the buckets (PyTorch's gradient_as_bucket_view).
struct DdpOptions {
  /// Bytes at which the first bucket of each dtype closes. Small, so that the first reduction
  /// starts early in backward. A bucket closes when it has reached its size, so it may exceed it by
  /// one tensor. Source: c10d::kDefaultFirstBucketBytes.
  int64_t first_bucket_bytes = int64_t{1} << 20;
  /// Bytes at which every later bucket closes. Source: c10d::kDefaultBucketBytesCap.
  int64_t bucket_cap_bytes = int64_t{25} << 20;
  /// Accept that a backward pass reaches only some of the parameters: those without a gradient
  /// count as zero, and keep what they had where no rank used them. Costs a walk over the graph per
  /// forward and one more small reduction per backward; the buckets then keep their first order.
  bool find_unused_parameters = false;
  /// Copy rank 0's buffers (running statistics …) to all ranks before each forward in training mode
  /// that will synchronise gradients.
  bool broadcast_buffers = true;
  /// Where the ranks can share memory, parameters and buckets lie in it: gradients are summed where
  /// they lie, and divide_step() can divide the optimizer's work. Each rank has parameters of its
  /// own.
  bool shared_memory = true;
  /// In which order 4-d weights and inputs lie. kContiguous, kChannelsLast: the weights are laid
  /// out at construction, and the inputs of every forward. kAuto: channels_last where the model's
  /// layers profit, found out at the first forward in training that will average gradients by two
  /// more forwards, in evaluation mode and without gradients, whose outputs must agree up to
  /// rounding; what was found is logged and in stats(). kAsIs: nothing is touched. See
  /// docs/guides/memory_format.md.
  engine::MemoryFormat memory_format = engine::MemoryFormat::kAsIs;
  /// Limit for each reduction and broadcast. Zero means the group's.
  std::chrono::milliseconds timeout{0};

  /// Errors: UsageError that names the field.
  void validate() const;
};

/// How DistributedDataParallel::divide_step() divides. Equal on all ranks.
struct DivideOptions {
  /// The ranks of the host update one copy of the parameters between them: an eighth less memory
  /// traffic in a divided step of two ranks (the pages of the other copies stay). Hazard:
  /// what a program does to a parameter by itself (`p.mul_(0.9)`, an initialisation, weights loaded
  /// from a file) then happens once for every rank that does it: let one rank do it, between two
  /// barriers. Where steps are not divided parameters are not shared. Of several optimizers over
  /// the same ones the last to be divided shares them, and the others must make no step: each rank
  /// would make it.
  bool share_parameters = false;
  /// The update of a bucket's parameters runs as soon as their gradients are averaged, beside the
  /// rest of backward; step() completes it. Hazard: when backward() returns the parameters have
  /// their new values already. What a program does to gradients between backward() and step() (to
  /// scale them, clip them, skip a step, look at weights before the update) comes too late, a
  /// learning rate set there counts from the next step on, and a graph that is kept for a second
  /// backward() sees new weights, as does a graph that also holds a parameter detached: an error
  /// says so where autograd can tell. After a backward() that throws some parameters have new
  /// values and some old, in memory of the rank's own: wrap again and go on from a checkpoint.
  /// Clipping by norms, which needs all gradients
  /// first, and find_unused_parameters and communication hooks are refused. With or without divided
  /// steps.
  bool overlap_update = false;
};

}  // namespace argosy::parallel
