#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/base/even_part.h"
#include "argosy/base/exact_sum.h"
#include "argosy/optim/kernels/squares.h"

namespace argosy::optim {

/// How processes with the same parameters each update a part of them and hand it to the others.
/// Unlike with a StepDivision, a process knows the gradients of its own part only, and keeps that
/// part's state. See parallel::ddp::ShardedBuckets.
class ShardedStep {
 public:
  virtual ~ShardedStep() = default;
  ShardedStep() = default;
  ShardedStep(const ShardedStep&) = delete;
  ShardedStep& operator=(const ShardedStep&) = delete;
  ShardedStep(ShardedStep&&) = delete;
  ShardedStep& operator=(ShardedStep&&) = delete;

  /// Parts of a parameter begin at multiples of this, so that norms do not depend on them.
  static constexpr int64_t kUnit = kernels::kSquaresBlock;
  /// Returns the elements, in the order of its memory, that this process updates.
  /// Errors: UsageError naming the parameter if it has been given other memory, or if its model is
  /// gone.
  [[nodiscard]] virtual IndexRange part_of(const at::Tensor& parameter) const = 0;

  /// Returns this process's elements of a parameter, and of its gradient, in place and flat.
  /// `to_write`: a whole that is there goes.
  [[nodiscard]] virtual at::Tensor values_of(const at::Tensor& parameter, bool to_write) const = 0;
  [[nodiscard]] virtual at::Tensor gradient_of(const at::Tensor& parameter) const = 0;

  /// True if the values are f32 while the parameter has 16 bits: the parameter is rounded from
  /// them, and they are part of the optimizer's state. Gradients and states are f32 then.
  [[nodiscard]] virtual bool has_master(const at::Tensor& /*parameter*/) const { return false; }

  /// Returns memory for a state of these values, of zeros, flat.
  [[nodiscard]] virtual at::Tensor make_state(const at::Tensor& values) const;
  /// True if this process has all of each gradient, although it updates a part.
  [[nodiscard]] virtual bool has_whole_gradients() const { return false; }

  /// Comes where an update begins.
  virtual void begin() = 0;
  /// Collective: gives all processes the new values. On a device it returns when that is queued.
  virtual void hand_out() = 0;
  /// Collective: adds each sum over the processes.
  virtual void sum(std::vector<ExactSum>& sums) const = 0;

  /// Collective, with the same parameter on all processes: returns the whole of a tensor that is
  /// shaped like `parameter`, of which each has its part, flat. In the parameter's layout.
  [[nodiscard]] virtual at::Tensor gather(const at::Tensor& parameter,
                                          const at::Tensor& part) const = 0;
};

}  // namespace argosy::optim
