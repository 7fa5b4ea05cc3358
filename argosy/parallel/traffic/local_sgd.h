#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "argosy/parallel/traffic/local_steps.h"
#include "argosy/parallel/traffic/traffic_options.h"

namespace argosy::parallel {

/// Averages weights every k steps in the place of gradients in each. The optimizer is SGD or
/// Momentum; its momentum is each virtual rank's own, and is not averaged. One virtual rank trains
/// as without it.
///
/// The adaptive one sets k anew at each average, from the mean loss of the ranks there and its
/// value at begin_step, and their learning rates:
///
///     k = ceil(sqrt(lr0 * loss / (lr * loss0) * init_k_steps)), from 1 to 16
///
/// It needs Optimizer::note_loss() before each step(), after each virtual rank's pass; fit() calls
/// it. A loss that is not finite,
/// on any rank, makes k = 1. Cost: an all-reduce of all weights at each average. Source:
/// Paddle 3.3, fleet/meta_optimizers/localsgd_optimizer.py; Stich, "Local SGD converges fast and
/// communicates little", ICLR 2019 (arXiv 1805.09767); Wang and Joshi, "Adaptive communication
/// strategies", MLSys 2019 (arXiv 1810.08313).
class LocalSgd final : public LocalSteps {
 public:
  /// Errors: UsageError for another optimizer than SGD and Momentum, and those of
  /// ddp::Core::set_apart().
  LocalSgd(const std::shared_ptr<ddp::Core>& model,
           const std::shared_ptr<optim::OptimizerImpl>& inner,
           const LocalSgdOptions& options);
  LocalSgd(const std::shared_ptr<ddp::Core>& model,
           const std::shared_ptr<optim::OptimizerImpl>& inner,
           const AdaptiveLocalSgdOptions& options);

  /// Says before there is a model whether it goes with an optimizer. Errors: as the constructor's.
  static void check_optimizer(const optim::OptimizerImpl& inner);

  void note_loss(double loss) override;
  /// Returns the number of steps from the last average to the next.
  [[nodiscard]] int64_t k_steps() const { return k_steps_; }

 private:
  void after_step() override;
  void add_shared_state(optim::OptimizerState& state) const override;
  [[nodiscard]] std::function<void()> read_shared_state(optim::OptimizerState& state) override;
  void begin();
  void average();
  void choose(double mean_loss);
  [[nodiscard]] double mean_loss() const;

  bool adapts_ = false;
  int64_t first_k_steps_;
  int64_t begin_step_;
  int64_t k_steps_;
  int64_t last_ = 0;                             // step whose weights were averaged
  std::vector<std::optional<double>> losses_{};  // of the step that comes, by virtual rank
  double first_loss_ = 0;
  double first_lr_ = 0;
};

}  // namespace argosy::parallel
