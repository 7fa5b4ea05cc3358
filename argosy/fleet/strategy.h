#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "argosy/engine/memory_format.h"
#include "argosy/parallel/traffic/traffic_options.h"

namespace argosy::fleet {

/// The most virtual ranks that a job can have: what a sum along the tree has room for.
inline constexpr int64_t kMostVirtualRanks = 32768;

/// Options for DistributedStrategy::lars. Names and defaults are Paddle's.
struct LarsConfigs {
  double lars_coeff = 0.001;          ///< the trust coefficient
  double lars_weight_decay = 0.0005;  ///< replaces the optimizer's
  double epsilon = 0;                 ///< added to the denominator
  /// Parameters whose names contain one of these texts have no weight decay.
  std::vector<std::string> exclude_from_weight_decay{};
};

/// Options for DistributedStrategy::lamb. Names and defaults are Paddle's.
struct LambConfigs {
  double lamb_weight_decay = 0.01;  ///< replaces the optimizer's
  /// Parameters whose names end with one of these texts have no weight decay.
  std::vector<std::string> exclude_from_weight_decay{};
};

/// Options for DistributedStrategy::gradient_merge. Names and defaults are Paddle's.
struct GradientMergeConfigs {
  int64_t k_steps = 1;  ///< backward passes per update
  bool avg = true;      ///< divide the sum of their gradients by k_steps
  /// Of the sums, which decides the last bits. "local": each rank adds up its passes, and the last
  /// one reduces the sum over the ranks. Where gradients are divided (`sharding` of stage 2 and 3)
  /// whole ones wait until then. "reduced": each pass is reduced, and then added: more traffic, and
  /// memory for parts alone. Ours.
  std::string order = "local";
};

/// Options for DistributedStrategy::amp. Names and defaults are Paddle's, except dtype and
/// decr_every_n_nan_or_inf.
struct AmpConfigs {
  /// The dtype of products and convolutions: "bfloat16", or "float16" on CUDA. Ours.
  std::string dtype = "bfloat16";
  /// Options of the scaler that distributed_scaler() returns. float16 needs it; bfloat16 has the
  /// range of f32.
  double init_loss_scaling = 32768;   ///< initial factor of the loss
  int64_t incr_every_n_steps = 1000;  ///< updates after which the factor grows
  double incr_ratio = 2;              ///< factor of the scale then
  double decr_ratio = 0.8;            ///< factor of the scale after an update that was skipped

  /// Level O2, beside `amp` and `sharding` of stage 3: parameters are 16-bit ones, rounded from f32
  /// masters that the optimizer updates; see parallel::MixedPrecision. They name the dtype.
  bool use_pure_fp16 = false;
  bool use_pure_bf16 = false;
  /// Of O2: gradients are added up in f32, on a rank and between ranks. Paddle's argument of
  /// amp.decorate().
  bool master_grad = false;

  /// Not supported yet: another value is a ConfigError that says what to do instead.
  int64_t decr_every_n_nan_or_inf = 1;
  bool use_dynamic_loss_scaling = true;
  std::vector<std::string> custom_white_list{};
  std::vector<std::string> custom_black_list{};
  std::vector<std::string> custom_black_varnames{};
  bool use_fp16_guard = true;
  bool use_optimizer_fp16 = false;
};

/// Options for DistributedStrategy::recompute. Names and defaults are Paddle's.
struct RecomputeConfigs {
  /// Names of the blocks that backward computes again; see parallel::recompute_blocks(). Empty: the
  /// outermost blocks. Paddle's are variables of the static graph.
  std::vector<std::string> checkpoints{};

  /// Not supported yet: another value is a ConfigError.
  bool enable_offload = false;
  std::vector<int64_t> checkpoint_shape{};
};

/// Options for DistributedStrategy::sharding. `stage` is Paddle's name.
struct ShardingConfigs {
  /// What ranks divide (ZeRO): the optimizer's state (1), gradients too (2), or the parameters as
  /// well (3; see parallel::fully_shard()). State and gradients are divided among all ranks of dp ×
  /// sharding, which costs no more traffic than among fewer; parameters along sharding.
  int64_t stage = 3;
  /// Of stage 3: see parallel::ShardOptions. Ours.
  std::vector<std::string> units{};
  int64_t unit_bytes = int64_t{1} << 20;
  bool reshard_after_forward = true;
  /// Of stage 3: a folder in whose files the optimizer's state lies; see parallel::Offload. Empty:
  /// in memory. Ours.
  std::string offload_folder{};
};

/// How fleet distributes a training job. Names and defaults are Paddle's
/// (paddle.distributed.fleet.DistributedStrategy, 2.4 to 3.x).
///
///     fleet::init({.find_unused_parameters = true});
///
/// Switching on a toggle that Argosy does not support yet is a ConfigError. from_json() also
/// refuses names that do not exist. As in Paddle, `<toggle>_configs` act only with their toggle;
/// power_sgd's and diloco's, which Paddle has not, are an error without it.
struct DistributedStrategy {
  /// Searches the graph after each forward for parameters that take no part in it. Costs a walk
  /// over the graph and a small all-reduce per step.
  bool find_unused_parameters = false;
  /// Megabytes (2^20 bytes) of gradients that are reduced together. The default is Paddle's; plain
  /// DistributedDataParallel has 25.
  double fuse_grad_size_in_MB = 32;  // NOLINT(readability-identifier-naming): Paddle's name
  /// Megabytes of the bucket that is ready first in backward. A small bucket lets reducing start
  /// early.
  double last_comm_group_size_MB = 1;  // NOLINT(readability-identifier-naming): Paddle's name
  /// Send gradients as 16-bit floats (IEEE half); sums are taken in f32.
  bool fp16_allreduce = false;
  /// The same in bfloat16. Ours; Paddle has no such toggle.
  bool bf16_allreduce = false;
  /// Divide each step among ranks that share memory, from 1 MiB of parameters on: see
  /// DistributedDataParallel::divide_step(). On devices and over hosts it takes scatter_gradients
  /// too. False: each rank updates all parameters itself. Ours.
  bool divide_update = true;
  /// For divided steps: see parallel::DivideOptions, also for the hazards. Ours.
  bool share_parameters = false;
  bool overlap_update = false;
  bool scatter_gradients = false;
  /// The number of virtual ranks, 0: one for each process. A training of V virtual ranks has the
  /// same bits on any number of processes: each process computes a contiguous range of them, one
  /// after the other, and processes beyond V are spares. Loops go over fleet::updates(). fit()
  /// resumes a checkpoint of one number of processes on another. See docs/guides/same_bits.md.
  /// Ours.
  int64_t virtual_ranks = 0;
  /// End the job with an error if ranks drift apart: see DdpOptions::check_drift. Ours.
  bool check_drift = true;
  /// What to do about the first gradient with a NaN or an infinity: "warn", "stop" or "ignore"; see
  /// DdpOptions::on_nonfinite. Ours.
  std::string on_nonfinite = "warn";
  /// distributed_model() computes batch norms over all ranks: parallel::convert_sync_batchnorm().
  bool sync_batch_norm = false;
  /// Memory format of images and convolution weights; see DdpOptions::memory_format. Ours. In JSON
  /// "auto", "as_is", "contiguous" or "channels_last".
  engine::MemoryFormat memory_format = engine::MemoryFormat::kAuto;

  /// distributed_optimizer() makes Lars of a Momentum, with its learning rates, groups, momentum
  /// and clipping.
  bool lars = false;
  LarsConfigs lars_configs{};
  /// distributed_optimizer() makes Lamb of an Adam or AdamW, with its learning rates, groups,
  /// betas, eps and clipping.
  bool lamb = false;
  LambConfigs lamb_configs{};
  /// In a loop of your own, step() acts at each k-th call, and zero_grad() after it. The passes
  /// between are not averaged over the ranks, as under no_sync(), unless gradient_merge_configs has
  /// another order. fit() has accumulate_grad_batches, whose order is "local".
  bool gradient_merge = false;
  GradientMergeConfigs gradient_merge_configs{};

  /// distributed_model() computes each forward in mixed precision, in training and in evaluation,
  /// and makes f32 of its outputs; see parallel::DdpOptions::autocast. distributed_scaler() returns
  /// the scaler of amp_configs. fit() takes both for prepare's `.amp`.
  bool amp = false;
  AmpConfigs amp_configs{};

  /// Backward computes blocks of the model again instead of keeping what lies between their
  /// operators. Errors: distributed_model() throws where the model has no such blocks.
  bool recompute = false;
  RecomputeConfigs recompute_configs{};

  // Strategies that save traffic, of which one acts: docs/guides/slow_networks.md. They exclude
  // `sharding`, gradient_merge and other ways to send gradients. What they keep belongs to a
  // virtual rank. distributed_optimizer() returns a new optimizer, whose state is in checkpoints.

  /// Averages the weights of SGD or Momentum every k steps, in the place of gradients in each.
  bool localsgd = false;
  parallel::LocalSgdOptions localsgd_configs{};
  /// The same with as many steps as the loss says; see Optimizer::note_loss().
  bool adaptive_localsgd = false;
  parallel::AdaptiveLocalSgdOptions adaptive_localsgd_configs{};
  /// Sends the largest elements of Momentum's gradients (deep gradient compression).
  bool dgc = false;
  parallel::DgcOptions dgc_configs{};
  /// Averages gradients as products of thin matrices. Ours; PyTorch has it as a hook.
  bool power_sgd = false;
  parallel::PowerSgdOptions power_sgd_configs{};
  /// Trains ranks apart for many steps, with any optimizer, and steps by the mean of their ways.
  /// Ours.
  bool diloco = false;
  parallel::DilocoOptions diloco_configs{};

  /// Not supported yet: true is a ConfigError that says what to use instead.
  bool pipeline = false;
  bool tensor_parallel = false;
  bool use_hierarchical_allreduce = false;
  bool elastic = false;
  bool auto_search = false;
  bool asp = false;
  bool qat = false;
  bool heter_ccl_mode = false;

  /// Degrees of parallelism by axis, with Paddle's names or short ones: {"dp_degree": 2,
  /// "sharding_degree": 4} or {"dp": 2, "sharding": 4}. -1, for one of them: what the others leave;
  /// without a word that is dp. "pp", "mp" and "sep" are 1 so far.
  std::map<std::string, int64_t> hybrid_configs{};
  /// The axes, the outermost first: ranks that differ only in the last have neighbouring numbers.
  std::vector<std::string> hybrid_order{"dp", "pp", "sharding", "sep", "mp"};
  /// Divides the optimizer's state, gradients and parameters among the ranks of the axis
  /// "sharding": all, unless hybrid_configs gives it a degree, which switches it on too.
  bool sharding = false;
  ShardingConfigs sharding_configs{};

  /// Errors: ConfigError naming the field, its value and what is allowed.
  void validate() const;
  /// True if ranks divide more than samples: `sharding`, or a degree of it.
  [[nodiscard]] bool shards() const;
  /// True if ranks train weights of their own for some steps: localsgd, adaptive_localsgd, diloco.
  [[nodiscard]] bool trains_apart() const { return localsgd || adaptive_localsgd || diloco; }
  /// Returns the toggle that saves traffic by a state of its own, "dgc"; empty: none is on.
  [[nodiscard]] std::string saves_traffic_by() const;

  /// Reads a JSON object with these field names.
  /// Errors: ConfigError naming an unknown key (with the nearest known one) or a wrong type.
  [[nodiscard]] static DistributedStrategy from_json(const std::string& text);
  [[nodiscard]] std::string to_json() const;
  /// Returns those of the `…_configs` that say something although their toggle is off.
  [[nodiscard]] std::vector<std::string> idle_configs() const;
};

}  // namespace argosy::fleet
