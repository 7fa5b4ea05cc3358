#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/comm/work.h"
#include "argosy/parallel/traffic/local_steps.h"

namespace argosy::parallel {

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

/// Trains each rank on its own for some steps with any optimizer, and then makes a step of an outer
/// one with the mean of the ways that the ranks went:
///
///     delta = global - own weights, averaged over the ranks
///     m = outer_momentum * m + delta
///     global = global - outer_lr * (delta + outer_momentum * m)      without nesterov: m alone
///     own weights = alpha * own + (1 - alpha) * global
///
/// The inner optimizer's state stays each rank's own. Streaming: fragments of the weights in turns,
/// summed while the ranks train on, on a group of their own, so that nothing else waits for them.
/// Cost: an all-reduce of a fragment's weights each time; memory for twice the weights.
/// Source: Douillard et al., "DiLoCo", arXiv 2311.08105, algorithm 1; "Streaming DiLoCo", arXiv
/// 2501.18512, algorithm 2 (its 4-bit numbers have exponents, these are whole ones in a scale).
class Diloco final : public LocalSteps {
 public:
  /// Collective. Errors: UsageError for an optimizer whose steps or gradients are not a rank's own,
  /// and those of ddp::Core::set_apart().
  Diloco(const std::shared_ptr<ddp::Core>& model,
         const std::shared_ptr<optim::OptimizerImpl>& inner,
         const DilocoOptions& options);

 private:
  /// Some of the weights.
  struct Fragment {
    std::vector<size_t> places{};
    std::vector<at::Tensor> weights{};
    int64_t turn = 0;       // it is summed after steps with this remainder by sync_every
    at::Tensor global{};    // flat
    at::Tensor momentum{};  // flat; undefined before the first sum
  };
  /// A sum that is under way.
  struct Sum {
    comm::Work work{};
    at::Tensor mean{};  // of 32 bits: the all-reduce's
    at::Tensor code{};  // else: this rank's, and what arrives
    std::vector<at::Tensor> received{};
    bool is_done = false;
    int64_t due = 0;  // the step after which it is used
  };

  void after_step() override;
  void add_shared_state(optim::OptimizerState& state) const override;
  void take_shared_state(optim::OptimizerState& state) override;
  void deal_fragments();
  void start(size_t fragment);
  const at::Tensor& mean_of(size_t fragment) const;
  void finish(size_t fragment);
  void load_fragment(size_t fragment, const std::vector<const engine::StateDict*>& saved);

  DilocoOptions options_;
  comm::Group sums_;
  std::vector<Fragment> fragments_{};
  mutable std::vector<std::optional<Sum>> under_way_{};  // of each fragment
};

}  // namespace argosy::parallel
