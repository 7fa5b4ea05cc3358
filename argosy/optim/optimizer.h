#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/engine/named.h"
#include "argosy/engine/state_dict.h"
#include "argosy/optim/clip.h"
#include "argosy/optim/decay.h"
#include "argosy/optim/step_division.h"

namespace argosy::optim {

/// Parameters that are treated differently from the rest.
///
///     optim::AdamW opt(net, {.lr = 1e-3}, {{.names = {"*.bias", "*.norm?.*"}, .weight_decay =
///     0.0},
///                                          {.params = head->parameters(), .lr_scale = 10}});
struct ParamGroup {
  /// Which parameters, by name; `*` stands for any characters, dots included, `?` for one.
  std::vector<std::string> names{};
  /// Which parameters, by identity; added to those named.
  std::vector<at::Tensor> params{};
  /// Learning rate of this group; empty: the optimizer's times lr_scale.
  std::optional<double> lr{};
  double lr_scale = 1.0;
  /// Empty: the optimizer's.
  std::optional<WeightDecay> weight_decay{};
};

/// What an optimizer holds of one group; the first one has all that no ParamGroup claimed.
struct GroupInfo {
  std::vector<std::string> names{};
  double lr = 0;
  double lr_scale = 1;  ///< factor of set_lr()
  WeightDecay weight_decay{};
};

/// What zero_grad does with a gradient.
struct ZeroGradOptions {
  /// Drops gradients, so that the next backward's take their place, instead of writing zeros that
  /// it is added to: less memory traffic. grad() is undefined in between, and step() passes
  /// by a parameter that the next backward does not reach. PyTorch's default since 2.0, libtorch's
  /// too.
  bool set_to_none = true;
};

/// The state of an optimizer by parameter name; tensors are shared with it, clone() before going
/// on.
struct OptimizerState {
  std::string optimizer{};  ///< "Adam"
  /// "fc.weight" → {"step": …, "exp_avg": …, "exp_avg_sq": …}; none for a parameter never updated.
  std::vector<std::pair<std::string, engine::StateDict>> parameters{};
  std::vector<GroupInfo> groups{};

  /// nullptr when there is none.
  [[nodiscard]] const engine::StateDict* find(std::string_view name) const;
  [[nodiscard]] OptimizerState clone() const;
};

/// What stands behind an Optimizer. Derive from it to wrap another optimizer (fleet does).
class OptimizerImpl {
 public:
  virtual ~OptimizerImpl() = default;
  virtual void step() = 0;
  virtual void zero_grad(const ZeroGradOptions& options) = 0;
  [[nodiscard]] virtual const engine::NamedTensors& parameters() const = 0;
  [[nodiscard]] virtual const std::vector<GroupInfo>& groups() const = 0;
  virtual void set_group_lr(std::size_t group, double lr) = 0;
  virtual void add_param_group(const engine::NamedTensors& parameters, const ParamGroup& group) = 0;
  /// How step() clips gradients, for records of a run: "norm 1"; empty: it does not.
  [[nodiscard]] virtual std::string clipping() const { return {}; }
  [[nodiscard]] virtual OptimizerState state_dict() const = 0;
  virtual void load_state_dict(const OptimizerState& state) = 0;
  /// How many tensors of state a parameter has; nullopt where divide() is not supported.
  [[nodiscard]] virtual std::optional<std::size_t> states_per_parameter() const { return {}; }
  /// From now on steps are divided. nullptr: no longer. State moves in the next step.
  /// Errors: UsageError between step_early() and step().
  virtual void divide(const std::shared_ptr<StepDivision>& /*division*/) {}
  /// Whether each parameter's update needs its own gradient only, so that step_early() can be used.
  [[nodiscard]] virtual bool can_step_early() const { return false; }
  /// Updates those of `parameters` that are this optimizer's, ahead of the step() that completes
  /// the step. In another thread than step(), but not at the same time.
  virtual void step_early(std::span<const at::Tensor> /*parameters*/) {}
  /// Whether a step has begun by step_early().
  [[nodiscard]] virtual bool stepped_early() const { return false; }
  /// The backward that step_early() was called from has failed: what is updated stays so, the rest
  /// of the step is not made, and no other process writes into the parameters from here on.
  virtual void abandon_step() noexcept {}
};

/// Whether some parameter is updated by both.
[[nodiscard]] bool have_parameters_in_common(const OptimizerImpl& a, const OptimizerImpl& b);

/// Updates parameters from their gradients: a handle, whose copies are the same optimizer.
///
///     optim::Adam optimizer(model, {.lr = 1e-3});
///     loss.backward();
///     optimizer.step();
///     optimizer.zero_grad();
///
/// Built from anything with named parameters (engine::named_parameters) by SGD, Momentum, Adam,
/// AdamW. A parameter under two names (tied weights) counts once, under the first. Parameters are
/// dense f32 or f64 tensors; 0-dim, empty and channels_last ones included. Not thread-safe. step()
/// uses the intra-op threads (at::get_num_threads()) and gives the same bits with any number of
/// them. On another device than the CPU step() is made of libtorch's operators, a handful for each
/// parameter, in the same order of rounding; its state lies there too.
class Optimizer {
 public:
  explicit Optimizer(std::shared_ptr<OptimizerImpl> impl);

  /// One update of every parameter that has a gradient; others, and those that require none, stay.
  /// Errors: UsageError naming the parameter: sparse gradient, dtype not supported.
  /// Cost: one pass over parameters, gradients and state. A gradient whose strides differ from its
  ///   parameter's is copied first, a parameter with gaps in memory too, and back.
  void step();

  /// Drops the gradients, or zeroes them in place, views of buckets included.
  void zero_grad(const ZeroGradOptions& options = {});

  /// All parameters with their names, in the order of registration.
  [[nodiscard]] const engine::NamedTensors& parameters() const;

  [[nodiscard]] const std::vector<GroupInfo>& param_groups() const;
  /// More parameters, with names that the optimizer does not have yet.
  template <engine::NamedParameterSource T>
  void add_param_group(const T& source, const ParamGroup& group = {}) {
    impl_->add_param_group(engine::named_parameters(source), group);
  }

  /// Learning rate of the first group.
  [[nodiscard]] double lr() const;
  /// Sets every group to `lr` times its lr_scale.
  void set_lr(double lr);
  void set_group_lr(std::size_t group, double lr);

  [[nodiscard]] OptimizerState state_dict() const;
  /// Takes over state and learning rates; the other options stay as constructed. All or nothing.
  /// The order of parameters may differ, their names and groups may not.
  /// Errors: CheckpointError that lists every missing, unexpected and mismatched entry. State that
  ///   this optimizer has no use for (amsgrad's, momentum's) is one: PyTorch takes over the saved
  ///   options too and goes on with the saved algorithm; to drop the state instead would change it
  ///   without a word.
  void load_state_dict(const OptimizerState& state);

  [[nodiscard]] const std::shared_ptr<OptimizerImpl>& impl() const noexcept { return impl_; }

 private:
  std::shared_ptr<OptimizerImpl> impl_;
};

}  // namespace argosy::optim
