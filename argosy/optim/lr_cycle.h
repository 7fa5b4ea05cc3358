#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "argosy/optim/lr_scheduler.h"

namespace argosy::optim {

struct CosineAnnealingWarmRestartsOptions {
  int64_t t_0 = 0;     ///< required: steps of the first cosine
  int64_t t_mult = 1;  ///< each cosine is this many times as long as the one before
  double eta_min = 0.0;
};

/// Repeated half cosines from base to eta_min.
/// Source: Loshchilov & Hutter, "SGDR", ICLR 2017; torch.optim.lr_scheduler 2.x.
class CosineAnnealingWarmRestarts final : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer optimizer,
                              const CosineAnnealingWarmRestartsOptions& options);
};

/// The curve from one rate to another.
enum class AnnealStrategy { kCos, kLinear };

/// Defaults are PyTorch's, but for the momentum, which stays (PyTorch's cycle_momentum = False;
/// Paddle knows no other).
struct OneCycleLROptions {
  double max_lr = 0;        ///< required; times each group's lr_scale
  int64_t total_steps = 0;  ///< required
  double pct_start = 0.3;   ///< share of total_steps in which the rate rises
  AnnealStrategy anneal_strategy = AnnealStrategy::kCos;
  double div_factor = 25.0;        ///< the first rate is max_lr / div_factor
  double final_div_factor = 1e4;   ///< the last is the first / final_div_factor
  std::optional<double> end_lr{};  ///< Paddle's end_learning_rate: the last rate itself
  /// The rate falls to the first rate as it rose, and from there to the last.
  bool three_phase = false;
};

/// One rise and one fall in total_steps. The optimizer's own rate is not used. A step after the
/// last is an error, as in PyTorch and Paddle. The step that follows the last update stays at the
/// last rate; PyTorch and Paddle continue the curve.
/// Source: Smith & Topin, "Super-convergence", 2018; torch.optim.lr_scheduler 2.x, OneCycleLR;
///   Paddle 3.3, paddle/optimizer/lr.py, OneCycleLR.
class OneCycleLR final : public LRScheduler {
 public:
  OneCycleLR(Optimizer optimizer, const OneCycleLROptions& options);
};

/// How the height of CyclicLR's cycles changes:
enum class CyclicMode {
  kTriangular,   ///< not at all
  kTriangular2,  ///< halved with each cycle
  kExpRange,     ///< times gamma^t
};

/// The argument of CyclicLR's scale_fn.
enum class ScaleMode { kCycle, kIterations };

/// Defaults are PyTorch's, but for the momentum, which stays (PyTorch's cycle_momentum = False;
/// Paddle knows no other).
struct CyclicLROptions {
  double base_lr = 0;  ///< lowest rate; times each group's lr_scale, as max_lr
  double max_lr = 0;   ///< required
  int64_t step_size_up = 2000;
  std::optional<int64_t> step_size_down{};  ///< empty: as step_size_up
  CyclicMode mode = CyclicMode::kTriangular;
  double gamma = 1.0;  ///< for kExpRange (Paddle: exp_gamma)
  /// Returns a factor of the height for the cycle, counted from 1, or for the step. Replaces
  /// `mode`.
  std::function<double(double)> scale_fn{};
  ScaleMode scale_mode = ScaleMode::kCycle;
};

/// Straight lines up from base_lr to max_lr and down again, without end. The optimizer's own rate
/// is not used. Source: Smith, "Cyclical learning rates for training neural networks", WACV 2017;
/// torch.optim.lr_scheduler 2.x, CyclicLR.
class CyclicLR final : public LRScheduler {
 public:
  CyclicLR(Optimizer optimizer, const CyclicLROptions& options);
};

}  // namespace argosy::optim
