#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/comm/work.h"
#include "argosy/engine/state_dict.h"
#include "argosy/parallel/traffic/local_steps.h"
#include "argosy/parallel/traffic/traffic_options.h"

namespace argosy::parallel {

/// Trains each virtual rank on its own for some steps with any optimizer, and then makes a step of
/// an outer one with the mean of the ways that they went:
///
///     delta = global - own weights, averaged over the virtual ranks
///     m = outer_momentum * m + delta
///     global = global - outer_lr * (delta + outer_momentum * m)      without nesterov: m alone
///     own weights = alpha * own + (1 - alpha) * global
///
/// It begins at the weights of the first step. The inner optimizer's state stays each one's own.
/// Streaming: fragments of the weights in turns, summed while the ranks train on, on a group of
/// their own, so that nothing else waits for them.
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
    std::vector<at::Tensor> weights{};  // the model's
    int64_t turn = 0;       // it is summed after steps with this remainder by sync_every
    at::Tensor global{};    // flat; undefined before the first step
    at::Tensor momentum{};  // flat; undefined before the first sum
  };
  /// A sum that is under way.
  struct Sum {
    comm::Work work{};
    at::Tensor mean{};   // of 32 bits: the all-reduce's
    at::Tensor codes{};  // else: of this process, [most of a process, bytes], and what arrives
    std::vector<at::Tensor> received{};
    bool is_done = false;
    int64_t due = 0;  // the step after which it is used
  };

  /// Entries by parameter, as traffic::taken_out() returns them.
  using Saved = std::map<std::string, engine::StateDict>;

  void before_step() override;
  void after_step() override;
  void forget_weights() override;
  void add_shared_state(optim::OptimizerState& state) const override;
  [[nodiscard]] std::function<void()> read_shared_state(optim::OptimizerState& state) override;
  void deal_fragments();
  [[nodiscard]] std::vector<at::Tensor> weights_of(const Fragment& fragment, int64_t leaf) const;
  void start_in_few_bits(const std::vector<at::Tensor>& deltas, Sum& sum) const;
  void start(size_t place);
  const at::Tensor& mean_of(size_t place) const;
  void finish(size_t place);
  void check_fragments(const Saved& saved) const;
  [[nodiscard]] std::vector<const at::Tensor*> entries_in(const Saved& saved,
                                                          const std::vector<size_t>& places,
                                                          const std::string& name) const;
  [[nodiscard]] at::Tensor flat_in(const Saved& saved,
                                   const Fragment& fragment,
                                   const std::string& name) const;
  [[nodiscard]] std::optional<Sum> sum_in(const Saved& saved, const Fragment& fragment) const;

  DilocoOptions options_;
  comm::Group sums_;
  std::vector<Fragment> fragments_{};
  size_t last_fragment_ = 0;                             // that has weights
  mutable std::vector<std::optional<Sum>> under_way_{};  // of each fragment
};

}  // namespace argosy::parallel
