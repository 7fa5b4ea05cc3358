#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/optim/optimizer.h"

namespace argosy::optim {

/// Names and defaults are PyTorch's.
struct GradScalerOptions {
  double init_scale = 65536;       ///< initial factor of the loss; kept as f32
  double growth_factor = 2;        ///< factor of the scale after growth_interval unskipped updates
  double backoff_factor = 0.5;     ///< factor of the scale after a skipped update
  int64_t growth_interval = 2000;  ///< updates
  bool enabled = true;  ///< false: the scaler does nothing, and step() is the optimizer's
};

/// The state of a GradScaler. PyTorch's state_dict has the same five numbers.
struct GradScalerState {
  double scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;
  int64_t growth_tracker = 0;  ///< updates since the last change of the scale
};

/// Multiplies the loss so that small gradients do not vanish in float16, and skips updates whose
/// gradients overflowed. The factor grows over time and falls after each skipped update. bfloat16
/// has the range of f32 and needs no scaler.
///
///     optim::GradScaler scaler;
///     for (…) {
///       { const engine::Autocast autocast({…}); loss = …; }
///       scaler.scale(loss).backward();
///       scaler.unscale_(optimizer);                // only to look at gradients, or to change them
///       optim::clip_grad_norm_(net, 1.0);
///       if (scaler.step(optimizer)) schedule.step();
///       scaler.update();
///       optimizer.zero_grad();
///     }
///
/// A skipped update leaves out the optimizer's whole step: weights, moments and the count of steps
/// stay unchanged. Schedules and averages of weights should follow the result of step().
///
/// Several ranks must skip the same updates. With DistributedDataParallel they do, because
/// gradients are averaged before step() and one rank's NaN or infinity is in everybody's average.
/// If ranks hold different gradients, use agree_by() or fleet::distributed_scaler().
///
/// Several optimizers, each with its own unscale_() and step(), share one scale and one update().
/// All copies of an optimizer's handle count as the same optimizer. Not thread-safe.
/// Cost: unscale_() reads and writes the gradients once.
/// Source: torch/amp/grad_scaler.py and aten/src/ATen/native/cpu/AmpGradScalerKernels.cpp of 2.x;
/// the same bits.
class GradScaler final {
 public:
  /// The result of a look at the gradients.
  struct Seen {
    bool gradients = false;  ///< there was a gradient
    bool inf = false;        ///< and one was not finite
  };
  /// Turns what this rank has seen into what any rank has seen. Collective.
  using Agreement = std::function<Seen(const Seen& own)>;

  /// Errors: UsageError naming the option that is out of range.
  explicit GradScaler(const GradScalerOptions& options = {});

  /// Returns the loss times the scale.
  [[nodiscard]] at::Tensor scale(const at::Tensor& loss);
  [[nodiscard]] std::vector<at::Tensor> scale(const std::vector<at::Tensor>& losses);

  /// Divides the optimizer's gradients by the scale, in place, and notes whether one of them was
  /// not finite. Call it at most once per step(), after the last accumulated batch. Otherwise
  /// step() does it.
  /// Errors: UsageError before the first scale(), twice since the last update(), after step(), for
  /// an optimizer whose update has begun in backward (overlap_update), and for a gradient that is
  /// not dense f32 or f64.
  void unscale_(const Optimizer& optimizer);

  /// Makes the optimizer's step unless some gradient is not finite, and returns whether it was
  /// made.
  /// Errors: UsageError if called twice since the last update(), or without any gradient; and those
  /// of unscale_().
  bool step(Optimizer& optimizer);

  /// Computes the scale of the next update from what was found, and forgets that.
  /// Errors: UsageError if no gradients were looked at since the last update().
  void update();
  /// Sets the scale instead. Errors: UsageError unless it is positive and finite.
  void update(double new_scale);

  [[nodiscard]] double get_scale() const;  ///< 1 if the scaler is not enabled
  [[nodiscard]] bool is_enabled() const noexcept { return options_.enabled; }
  /// Returns whether a gradient was not finite (on any rank, with agree_by()), from unscale_() or
  /// step() until update(). nullopt: not looked at yet.
  [[nodiscard]] std::optional<bool> found_inf(const Optimizer& optimizer) const;

  /// Lets each unscale_() ask the ranks from now on; nullptr ends it. All ranks must then call
  /// unscale_(), also those without a gradient, which follow those that have one.
  void agree_by(Agreement agreement) { agreement_ = std::move(agreement); }

  /// Call it after update(). Errors: UsageError between unscale_() and update().
  [[nodiscard]] GradScalerState state_dict() const;
  /// Loads all five numbers. Does nothing if the scaler is not enabled, as in PyTorch.
  /// Errors: CheckpointError naming a number that is out of range.
  void load_state_dict(const GradScalerState& state);

 private:
  enum class Stage { kReady, kUnscaled, kStepped };
  /// The findings for one optimizer since the last update().
  struct Finding {
    Stage stage = Stage::kUnscaled;
    Seen seen{};
  };

  void check_begun(const char* function) const;
  [[nodiscard]] Stage stage_of(const Optimizer& optimizer) const;

  GradScalerOptions options_;
  float scale_;
  int64_t growth_tracker_ = 0;
  bool begun_ = false;  // scale() was called
  std::unordered_map<const OptimizerImpl*, Finding> findings_{};
  Agreement agreement_{};
  std::shared_ptr<const double> scaling_{};  // from scale() to update(): by what
};

/// Returns the factor by which the losses of this thread are scaled: from a scaler's scale() to its
/// update(), or its end. Else nullopt.
[[nodiscard]] std::optional<double> loss_scale_of_thread() noexcept;
/// Makes this thread's losses count as scaled so as long as the result lives, for a process that
/// has none itself and follows others. A scaler may then step without scale().
[[nodiscard]] std::shared_ptr<const double> follow_loss_scale(double scale);

}  // namespace argosy::optim
