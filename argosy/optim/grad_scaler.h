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
  double init_scale = 65536;  ///< what the loss is multiplied by at the beginning; kept as f32
  double growth_factor = 2;   ///< of the scale, after growth_interval updates without a skipped one
  double backoff_factor = 0.5;     ///< of the scale, after a skipped update
  int64_t growth_interval = 2000;  ///< updates
  bool enabled = true;  ///< false: the scaler does nothing, and step() is the optimizer's
};

/// Where a GradScaler stands; PyTorch's state_dict has the same five numbers.
struct GradScalerState {
  double scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;
  int64_t growth_tracker = 0;  ///< updates since the last change of the scale
};

/// Multiplies the loss, so that small gradients do not vanish in float16, and passes by the updates
/// whose gradients overflowed; the factor grows while all goes well and falls after each of these.
/// bfloat16 has the range of f32 and needs none.
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
/// What a skipped update leaves out is the optimizer's step as a whole: weights, moments and the
/// count of steps stay. What else counts updates (a schedule, an average of weights) asks step().
///
/// Several ranks must skip the same updates. With DistributedDataParallel they do: gradients are
/// averaged before step(), and a NaN or an infinity of one rank is in the average of all. Where
/// ranks hold different gradients, take agree_by(), or fleet::distributed_scaler().
///
/// Several optimizers, each with its unscale_() and step(), share one scale and one update(). Names
/// an optimizer by what its handles stand for, so all copies of a handle are the same one. Not
/// thread-safe. Cost: unscale_() reads and writes the gradients once.
/// Source: torch/amp/grad_scaler.py and aten/src/ATen/native/cpu/AmpGradScalerKernels.cpp of 2.x;
/// the same bits.
class GradScaler final {
 public:
  /// What gradients have shown.
  struct Seen {
    bool gradients = false;  ///< there was one
    bool inf = false;        ///< and one that is not finite
  };
  /// Of what this rank has seen makes what any of them has. Collective.
  using Agreement = std::function<Seen(const Seen& own)>;

  /// Errors: UsageError naming the option that is out of range.
  explicit GradScaler(const GradScalerOptions& options = {});

  /// The loss times the scale.
  [[nodiscard]] at::Tensor scale(const at::Tensor& loss);
  [[nodiscard]] std::vector<at::Tensor> scale(const std::vector<at::Tensor>& losses);

  /// Divides the optimizer's gradients by the scale, in place, and notes whether one of them was
  /// not finite. step() does it where it was not done. Once per step(), when the gradients of all
  /// accumulated batches are there.
  /// Errors: UsageError: before the first scale(); twice since the last update(); after step(); an
  ///   optimizer whose update has begun in backward (overlap_update); a gradient that is not dense
  ///   f32 or f64.
  void unscale_(const Optimizer& optimizer);

  /// The optimizer's step, unless some gradient is not finite. Returns whether it was made.
  /// Errors: UsageError: twice since the last update(); no gradient at all; those of unscale_().
  bool step(Optimizer& optimizer);

  /// Makes the scale for the next update from what was found, and forgets that.
  /// Errors: UsageError when nothing was found out since the last update().
  void update();
  /// Sets the scale instead. Errors: UsageError unless it is positive and finite.
  void update(double new_scale);

  [[nodiscard]] double get_scale() const;  ///< 1 where the scaler is not enabled
  [[nodiscard]] bool is_enabled() const noexcept { return options_.enabled; }
  /// After unscale_() or step(), until update(): whether a gradient was not finite, on any rank
  /// where the ranks agree. nullopt: not looked at yet.
  [[nodiscard]] std::optional<bool> found_inf(const Optimizer& optimizer) const;

  /// From now on each unscale_() asks the ranks, all of which must call it; also those without a
  /// gradient, which decide as those that have one do. nullptr: no longer.
  void agree_by(Agreement agreement) { agreement_ = std::move(agreement); }

  /// Take it after update(). Errors: UsageError between unscale_() and update().
  [[nodiscard]] GradScalerState state_dict() const;
  /// Takes over all five numbers. Nothing where the scaler is not enabled, as in PyTorch.
  /// Errors: CheckpointError naming a number that is out of range.
  void load_state_dict(const GradScalerState& state);

 private:
  enum class Stage { kReady, kUnscaled, kStepped };
  /// Of one optimizer, since the last update().
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
};

}  // namespace argosy::optim
