#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include "argosy/base/even_part.h"
#include "argosy/engine/memory_format.h"
#include "argosy/parallel/mesh.h"

namespace argosy::parallel {

/// What to do about a gradient with a NaN or an infinity.
enum class NonfiniteGradient {
  /// One line in the log names the first one, its rank and its update. A device's gradients are not
  /// looked at: it would have to be waited for.
  kWarn,
  /// backward() throws a DataError that says so, and the update is not made. Waits for a device at
  /// each gradient.
  kStop,
  kIgnore,  ///< gradients are not looked at
};

/// Fills `values`, which are the elements `range` of a parameter in row-major order, flat.
using InitializePart =
    std::function<void(const std::string& name, const at::Tensor& values, const IndexRange& range)>;

/// The types of parameters and gradients where ranks divide them. The parts that ranks keep are
/// f32: the masters, which the optimizer updates. See ShardOptions::mixed_precision. Source:
/// PyTorch's MixedPrecisionPolicy of fully_shard(); Paddle's amp level O2.
struct MixedPrecision {
  /// What gathered parameters are, so that the module computes in it: kBFloat16 or kHalf.
  at::ScalarType param_dtype = at::kBFloat16;
  /// What gradients are where they are added up, on a rank and between ranks: param_dtype, which
  /// halves the bytes, or kFloat (Paddle's master_grad). Unset: param_dtype.
  std::optional<at::ScalarType> reduce_dtype{};
  /// What outputs of forward become, where OutputCollector finds them. Unset: as they are.
  std::optional<at::ScalarType> output_dtype{};

  [[nodiscard]] at::ScalarType reduces_in() const { return reduce_dtype.value_or(param_dtype); }
};

/// Where what only a step uses lies between steps. See ShardOptions::offload.
struct Offload {
  /// A folder, of each rank, for the optimizer's state and the masters of mixed_precision. Each is
  /// a file without a name, mapped to memory, whose pages the system keeps while there is room.
  std::string folder{};
};

/// How ranks divide a model's parameters (ZeRO stage 3). See DdpOptions::shard.
struct ShardOptions {
  /// The number of ranks, one after the other, that divide the parameters; 0: all. With fewer than
  /// all, each such group has all parameters, so that a gather stays inside of it (of a host),
  /// while gradients and the optimizer's state are divided among all ranks. Divides the group's
  /// size.
  int degree = 0;
  /// In the place of `degree`: the ranks along its axis "sharding" divide the parameters, and those
  /// along its other axes have the same ones. A mesh of the wrapper's group. Empty: `degree`.
  Mesh mesh{};
  /// Names of modules whose parameters are gathered together; `*` stands for any characters.
  /// Empty: the children of the outermost ModuleLists and Sequentials, and whatever has none in it.
  /// Parameters outside of all units make one of their own.
  std::vector<std::string> units{};
  /// Units of fewer bytes are gathered together with those that follow.
  int64_t unit_bytes = int64_t{1} << 20;
  /// Units that stay whole beside the one that is in use; the next one is gathered ahead. Where
  /// ranks share memory nothing is gathered, and this and the next say nothing.
  int64_t kept = 1;
  /// False: all units stay whole from their first use until the step.
  bool reshard_after_forward = true;
  /// The module's f32 parameters, frozen ones too, become 16-bit ones, and floating-point inputs of
  /// forward with them. Half the bytes are gathered. The optimizer's state_dict() has the masters.
  /// Applies in a group of one, too. Unset: parameters stay what they are.
  std::optional<MixedPrecision> mixed_precision{};
  /// Keeps the optimizer's state, and masters, in files instead of memory: the same bits, and a
  /// step may wait for the disk. For parameters on the CPU. Unset: in memory.
  std::optional<Offload> offload{};
  /// Gives each rank the values of its part, so that those of the module are never read: where it
  /// leaves the memory of its parameters as it comes, that of the whole model is never there.
  /// Must give the same values on all ranks. Empty: rank 0's values of the module.
  InitializePart initialize{};

  /// Returns how many of `ranks` divide the parameters. Errors: UsageError if they cannot be
  /// divided into groups of so many, or are not those of `mesh`.
  [[nodiscard]] int degree_of(int ranks) const;
};

/// How DistributedDataParallel reduces gradients. The constructor checks that the options are equal
/// on all ranks. Gradients are always views into the buckets (PyTorch's gradient_as_bucket_view).
struct DdpOptions {
  /// Size in bytes at which the first bucket of each dtype is full. It is small so that the first
  /// reduction starts early in backward. A bucket may exceed its size by one tensor.
  /// Source: c10d::kDefaultFirstBucketBytes.
  int64_t first_bucket_bytes = int64_t{1} << 20;
  /// Size in bytes at which every later bucket is full. Source: c10d::kDefaultBucketBytesCap.
  int64_t bucket_cap_bytes = int64_t{25} << 20;
  /// Accept backward passes that reach only some of the parameters. A parameter without a gradient
  /// counts as zero; if no rank used it, its gradient stays as it was. This costs a walk over the
  /// graph per forward and one small reduction per backward, and buckets keep their first order.
  bool find_unused_parameters = false;
  /// Copy rank 0's buffers, such as running statistics, to all ranks before each forward in
  /// training mode whose backward will average gradients.
  bool broadcast_buffers = true;
  /// Put parameters and buckets into shared memory where the ranks have one. Gradients are then
  /// summed in place, and divide_step() can divide the optimizer's work. Each rank still has its
  /// own parameters, unless `shard` divides them: then the ranks have their values once.
  bool shared_memory = true;
  /// The memory format of 4-d weights and inputs. See docs/guides/memory_format.md.
  /// - kContiguous, kChannelsLast: the constructor converts the weights, each forward its inputs.
  /// - kAuto: channels_last if the model's layers profit and a trial succeeds. The first forward in
  ///   training that will average gradients makes the trial: two more forwards in evaluation mode,
  ///   without gradients, whose outputs must agree up to rounding. The log and stats() say the
  ///   result.
  /// - kAsIs: nothing is converted.
  engine::MemoryFormat memory_format = engine::MemoryFormat::kAsIs;
  /// The dtype in which each forward computes its products and convolutions: the wrapper runs the
  /// module under engine::Autocast, in training and in evaluation. Outputs become f32 again where
  /// OutputCollector finds them, except in types of your own. Unset: the caller's precision.
  std::optional<at::ScalarType> autocast{};
  /// Divides the parameters, gradients and optimizer's state among the ranks; the bits are those of
  /// ranks that have everything. See fully_shard().
  std::optional<ShardOptions> shard{};
  /// The number of virtual ranks: gradients are averaged over so many, whatever the number of
  /// processes, which share them in contiguous ranges. A process goes through its virtual ranks one
  /// after the other, as fleet::updates() does. 0: one for each process.
  int64_t virtual_ranks = 0;
  /// Compare, in each averaged pass, what the ranks hold to be the same: rates and weight decay of
  /// optimizers that are known (fleet::distributed_optimizer(), divide_step()), the scale of the
  /// loss, and a part of the trained parameters, all elements within 64 updates. backward() throws
  /// a UsageError that names what differs, the ranks and their values. docs/design/ddp.md lists
  /// what is not compared; nothing is on another device.
  bool check_drift = true;
  /// What to do about the first gradient of a process that is not finite. An update that a
  /// GradScaler skips does not count. Gradients on another device are not looked at.
  NonfiniteGradient on_nonfinite = NonfiniteGradient::kWarn;
  /// The deadline of each reduction and broadcast. Zero means the group's timeout.
  std::chrono::milliseconds timeout{0};

  /// Throws a UsageError that names the first field with an impossible value.
  void validate() const;
};

/// How DistributedDataParallel::divide_step() divides. The options must be equal on all ranks.
struct DivideOptions {
  /// The ranks of the host share one copy of the parameters. In a divided step of two ranks this
  /// saves an eighth of the memory traffic; the pages of the other copies stay allocated.
  /// Hazard: whatever a program does to a parameter by itself (`p.mul_(0.9)`, an initialisation,
  /// loading weights) then happens once per rank that does it. Let one rank do it, between two
  /// barriers. Parameters are shared only if steps are divided. If several optimizers update the
  /// same parameters, the last one that was divided shares them, and the others must not step.
  bool share_parameters = false;
  /// Updates the parameters of a bucket as soon as their gradients are averaged, while backward
  /// still runs; step() completes the update. This works with and without divided steps.
  /// Hazard: when backward() returns, the parameters already have their new values. Whatever a
  /// program does between backward() and step() comes too late: scaling or clipping gradients,
  /// skipping the step, reading the old weights. A learning rate set there counts from the next
  /// step. A graph that is kept for a second backward() sees new weights, and so does one that
  /// holds a detached parameter; an error says so where autograd can tell. After a backward() that
  /// throws, some parameters are updated and some are not: wrap again and resume from a checkpoint.
  /// Clipping by norms, find_unused_parameters and communication hooks are refused.
  bool overlap_update = false;
  /// Also divides steps of ranks that share no memory: on devices and over hosts. Each rank keeps
  /// 1/N of the optimizer's state (ZeRO stage 1), and all gradients. Gradients are averaged as
  /// without, and an all-gather hands the new values out: 1.5 times the bytes. As with
  /// scatter_gradients, parameters move to new memory, and state_dict() is collective.
  bool divide_state = false;
  /// The same, and divides gradients too (stage 2). They are reduced
  /// to the rank that updates them, and an all-gather hands the new values out: the bytes
  /// of an all-reduce, and a rank keeps 1/N of the optimizer's state. Where ranks share memory,
  /// steps are divided there as always, and gradients stay whole. Everywhere else:
  /// - After backward() a rank keeps the averages of its own part of the gradients. Whoever reads
  /// or
  ///   writes a grad() has all of it gathered, so all ranks must do so. Clip by the optimizer's
  ///   grad_clip, which gathers nothing.
  /// - Parameters move to new memory. Aliases from before (`p.detach()`) keep the old values.
  /// - state_dict() is collective, and returns tensors of the CPU; so are divide_step() and fleet's
  ///   save functions. When the wrapper is let go of, the state is lost.
  /// - The optimizer must have all parameters of the model that learn.
  bool scatter_gradients = false;
};

}  // namespace argosy::parallel
