#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "argosy/optim/lr_scheduler.h"

namespace argosy::optim {

struct LinearLROptions {
  double start_factor = 1.0 / 3;  ///< in (0, 1]
  double end_factor = 1.0;        ///< in [0, 1]
  int64_t total_iters = 5;        ///< steps from one factor to the other (Paddle: total_steps)
};

/// base * factor. The factor moves in a straight line from start_factor to end_factor in
/// total_iters steps and stays there. Source: torch.optim.lr_scheduler 2.x,
/// LinearLR._get_closed_form_lr.
class LinearLR final : public LRScheduler {
 public:
  explicit LinearLR(Optimizer optimizer, const LinearLROptions& options = {});
};

struct MultiStepLROptions {
  std::vector<int64_t> milestones{};  ///< steps at which the rate falls; repeated ones count
  double gamma = 0.1;
};

/// base * gamma^(milestones reached). Source: torch.optim.lr_scheduler 2.x, MultiStepLR.
class MultiStepLR final : public LRScheduler {
 public:
  MultiStepLR(Optimizer optimizer, const MultiStepLROptions& options);
};

struct ExponentialLROptions {
  double gamma = 0;  ///< > 0; required
};

/// base * gamma^t. Source: torch.optim.lr_scheduler 2.x, ExponentialLR.
class ExponentialLR final : public LRScheduler {
 public:
  ExponentialLR(Optimizer optimizer, const ExponentialLROptions& options);
};

struct PolynomialLROptions {
  int64_t total_iters = 5;  ///< steps to end_lr (Paddle: decay_steps)
  double power = 1.0;       ///< > 0
  double end_lr = 0.0;      ///< Paddle's default is 1e-4
  /// Paddle's cycle: after total_iters the rate rises to that of a decay that is twice, three times
  /// … as long, and falls again.
  bool cycle = false;
};

/// (base - end_lr) * (1 - t / total_iters)^power + end_lr, and end_lr afterwards unless it cycles.
/// Source: torch.optim.lr_scheduler 2.x, PolynomialLR._get_closed_form_lr; Paddle 3.3,
/// paddle/optimizer/lr.py, PolynomialDecay.
class PolynomialLR final : public LRScheduler {
 public:
  explicit PolynomialLR(Optimizer optimizer, const PolynomialLROptions& options = {});
};

/// base * factor(t). Source: torch.optim.lr_scheduler 2.x, LambdaLR.
class LambdaLR final : public LRScheduler {
 public:
  LambdaLR(Optimizer optimizer, std::function<double(int64_t step)> factor);
};

/// base * factor(1) * factor(2) * … * factor(t). Resuming calls `factor` t times, a step calls it
/// once.
/// Source: torch.optim.lr_scheduler 2.x, MultiplicativeLR.
class MultiplicativeLR final : public LRScheduler {
 public:
  MultiplicativeLR(Optimizer optimizer, std::function<double(int64_t step)> factor);
};

struct NoamDecayOptions {
  int64_t d_model = 0;       ///< required: width of the model
  int64_t warmup_steps = 0;  ///< required
};

/// base * d_model^-0.5 * min(t^-0.5, t * warmup_steps^-1.5): 0 at step 0.
/// Source: Vaswani et al., "Attention is all you need", NIPS 2017, equation 3; Paddle 3.3,
/// paddle/optimizer/lr.py, NoamDecay.
class NoamDecay final : public LRScheduler {
 public:
  NoamDecay(Optimizer optimizer, const NoamDecayOptions& options);
};

struct PiecewiseDecayOptions {
  std::vector<int64_t> boundaries{};  ///< steps at which the next value begins, in rising order
  std::vector<double> values{};       ///< one more than boundaries; the first > 0
};

/// values[i] between boundaries, times each group's lr_scale. The optimizer's own rate is not used.
/// Source: Paddle 3.3, paddle/optimizer/lr.py, PiecewiseDecay.
class PiecewiseDecay final : public LRScheduler {
 public:
  PiecewiseDecay(Optimizer optimizer, const PiecewiseDecayOptions& options);
};

struct RateDecayOptions {
  double gamma = 0;  ///< > 0; required
};

/// base * exp(-gamma t). Source: Paddle 3.3, paddle/optimizer/lr.py, NaturalExpDecay.
class NaturalExpDecay final : public LRScheduler {
 public:
  NaturalExpDecay(Optimizer optimizer, const RateDecayOptions& options);
};

/// base / (1 + gamma t). Source: Paddle 3.3, paddle/optimizer/lr.py, InverseTimeDecay.
class InverseTimeDecay final : public LRScheduler {
 public:
  InverseTimeDecay(Optimizer optimizer, const RateDecayOptions& options);
};

}  // namespace argosy::optim
