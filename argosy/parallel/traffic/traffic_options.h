#pragma once

#include <cstdint>
#include <vector>

namespace argosy::parallel {

/// Options of PowerSgd. Names and defaults are those of PyTorch's PowerSGDState, 2.15.
struct PowerSgdOptions {
  /// Rank of the matrices that approximate a gradient. More: better, and more bytes.
  int64_t matrix_approximation_rank = 1;
  /// Updates before it begins, in which gradients are averaged as they are.
  int64_t start_power_sgd_iter = 1000;  ///< PyTorch's start_powerSGD_iter
  /// Gradients that would become smaller by less than this factor travel as they are.
  double min_compression_rate = 2;
  /// Adds what an update left out to the next one. Takes as much memory as the gradients.
  bool use_error_feedback = true;
  /// Begins each approximation at the last one.
  bool warm_start = true;
  int64_t random_seed = 0;  ///< of the first approximation; equal on all ranks

  /// Errors: UsageError naming the field.
  void validate() const;
};

/// Options of DeepGradientCompression. Names and defaults are those of Paddle's dgc_configs.
struct DgcOptions {
  int64_t rampup_begin_step = 0;  ///< updates before it begins: plain momentum
  /// Updates over which the sparsities are taken one after the other, each equally long.
  int64_t rampup_step = 1;
  /// Shares of a gradient's elements that are not sent. The last one stays.
  std::vector<double> sparsity{0.999};
  /// Parameters with fewer elements are averaged as they are, and updated with plain momentum.
  /// Source: Paddle 3.3, DGCMomentumOptimizer, 16384.
  int64_t min_elements = 16384;

  /// Errors: UsageError naming the field.
  void validate() const;
};

/// Options of LocalSgd. Names and defaults are those of Paddle's localsgd_configs.
struct LocalSgdOptions {
  int64_t k_steps = 1;     ///< steps between two averages of the weights
  int64_t begin_step = 1;  ///< the last step whose gradients are averaged as ever

  /// Errors: UsageError naming the field.
  void validate() const;
};

/// Options of LocalSgd that chooses the number of steps itself. Names and defaults are those of
/// Paddle's adaptive_localsgd_configs.
struct AdaptiveLocalSgdOptions {
  int64_t init_k_steps = 1;  ///< steps between the first two averages
  int64_t begin_step = 1;    ///< as in LocalSgdOptions

  /// Errors: UsageError naming the field.
  void validate() const;
};

/// Options of Diloco. Names after torchft's DiLoCo, defaults of the paper.
struct DilocoOptions {
  int64_t sync_every = 500;     ///< steps of each rank between two sums of the same weights (H)
  double outer_lr = 0.7;        ///< of the outer SGD
  double outer_momentum = 0.9;  ///< of it
  bool outer_nesterov = true;   ///< the outer SGD looks a step ahead

  // Streaming DiLoCo.

  /// Parts of the weights, of about equal bytes, that are summed in turns, sync_every / fragments
  /// steps one after the other. 1: all at once.
  int64_t fragments = 1;
  /// Steps that go on while a fragment is summed; its result is used after them. 0: it is waited
  /// for at once. Less than sync_every.
  int64_t fragment_sync_delay = 0;
  /// Share that a rank's own weights have in the new ones; the rest is the outer optimizer's. The
  /// paper's is 0.5 with a delay, and torchft's default 0.
  double fragment_update_alpha = 0;
  /// Bits of a number on the wire: 32; or 8 or 4, in units of the largest of a block. With fewer
  /// than 32 each rank sends its own code to all others, which pays for few ranks.
  int64_t bits = 32;

  /// Errors: UsageError naming the field.
  void validate() const;
};

}  // namespace argosy::parallel
