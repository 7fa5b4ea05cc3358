#pragma once

#include <cstdint>
#include <string>

#include "argosy/engine/step_memory.h"
#include "argosy/parallel/ddp/options.h"

namespace torch::nn {
class Module;
}

namespace argosy::parallel {

/// How a model will be trained, for estimate_memory().
struct EstimateOptions {
  int ranks = 1;
  /// With DdpOptions::shard: divided parameters (stage 3). shared_memory: the ranks of a host share
  /// it, and all are on one host, or all that divide the parameters among them.
  DdpOptions wrapping{};
  bool scatter_gradients = false;  ///< DivideOptions::scatter_gradients (stage 2)
  bool divide_state = false;       ///< DivideOptions::divide_state (stage 1)
  int64_t virtual_ranks = 0;       ///< 0: one for each rank
  int64_t micro_batches = 1;       ///< passes of a virtual rank whose gradients are summed first
  int64_t states = 2;  ///< numbers of the optimizer's state for each parameter; Adam's 2
};

/// Bytes that a process holds on the CPU.
struct MemoryEstimate {
  int64_t parameters = 0;
  int64_t gradients = 0;
  int64_t state = 0;
  /// Sums of gradients that wait for those of the process's other virtual ranks.
  int64_t waiting = 0;
  /// Buffers of the model, such as running statistics.
  int64_t buffers = 0;
  /// Memory for whole units that stays for the next step, where units come and go.
  int64_t room = 0;
  /// Where most is held: whole units of parameters and of gradients, and what forward keeps for
  /// backward and computes with. Instead of `room`.
  int64_t gathered = 0;
  int64_t reduced = 0;
  int64_t activations = 0;
  int64_t to_come = 0;   ///< of `gradients`, what is not there yet: in a process alone
  std::string moment{};  ///< "backward of blocks.3"

  /// Between two steps.
  [[nodiscard]] int64_t kept() const {
    return parameters + gradients + state + waiting + buffers + room;
  }
  /// In a step.
  [[nodiscard]] int64_t most() const {
    return parameters + gradients - to_come + state + waiting + buffers + gathered + reduced +
           activations;
  }
};

/// Returns what each process will hold, by formula; the largest process's, where they differ. With
/// ShardOptions::mixed_precision `parameters` are the f32 parts, and wholes have their types. What
/// ShardOptions::offload puts into files does not count.
///
///     const auto net = engine::deferred<text::Gpt>(options);      // takes no memory
///     const parallel::MemoryEstimate each = parallel::estimate_memory(
///         *net, text::step_memory(options, {.sequences = 8}), {.ranks = 8, .wrapping = {.shard = …}});
///
/// The model may be deferred. `step` says what forward and backward hold beside parameters: see
/// engine::StepMemory. Not in it: libraries (about 300 MB, most of it shared), what the system adds
/// to blocks, and 0.5 MiB of shared memory for each rank and group of a host.
/// Units of gradients: two are whole at a time, by the formula; one more where the network is
/// slower than backward, one less where it is much faster. Errors: UsageError for options that the
/// wrapper refuses, too.
[[nodiscard]] MemoryEstimate estimate_memory(const torch::nn::Module& module,
                                             const engine::StepMemory& step,
                                             const EstimateOptions& options);

}  // namespace argosy::parallel
