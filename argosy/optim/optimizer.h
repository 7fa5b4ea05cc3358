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
#include "argosy/optim/sharded_step.h"
#include "argosy/optim/step_division.h"

namespace argosy::optim {

/// A group of parameters with options of its own.
///
///     optim::AdamW opt(net, {.lr = 1e-3},
///                      {{.names = {"*.bias", "*.norm?.*"}, .weight_decay = 0.0},
///                       {.params = head->parameters(), .lr_scale = 10}});
struct ParamGroup {
  /// Names of parameters. `*` stands for any characters, dots included, and `?` for one.
  std::vector<std::string> names{};
  /// Parameters themselves, added to the named ones.
  std::vector<at::Tensor> params{};
  /// Learning rate of this group. Empty: the optimizer's rate times lr_scale.
  std::optional<double> lr{};
  double lr_scale = 1.0;
  /// Empty: the optimizer's decay.
  std::optional<WeightDecay> weight_decay{};
};

/// One group of an optimizer. The first group has all parameters that no ParamGroup claimed.
struct GroupInfo {
  std::vector<std::string> names{};
  double lr = 0;
  double lr_scale = 1;  ///< factor of set_lr()
  WeightDecay weight_decay{};
};

/// How zero_grad clears gradients.
struct ZeroGradOptions {
  /// True drops the gradients: the next backward sets them instead of adding to zeros, which moves
  /// less memory. grad() is undefined in between, and step() skips parameters that the next
  /// backward does not reach. The default of PyTorch and libtorch since 2.0.
  bool set_to_none = true;
};

/// The state of an optimizer by parameter name. It shares the optimizer's tensors: call clone()
/// before the next step. Where processes divide the state, a tensor is gathered when it is read, so
/// all of them read alike (engine::own_part() is what this one has).
struct OptimizerState {
  std::string optimizer{};  ///< "Adam"
  /// "fc.weight" → {"step": …, "exp_avg": …, "exp_avg_sq": …}, without parameters that were never
  /// updated.
  std::vector<std::pair<std::string, engine::StateDict>> parameters{};
  std::vector<GroupInfo> groups{};

  /// Returns nullptr if the parameter has no state.
  [[nodiscard]] const engine::StateDict* find(std::string_view name) const;
  [[nodiscard]] OptimizerState clone() const;
};

/// Options in words, by name: {{"momentum", "0.9"}, {"grad_clip", "global norm 1"}}.
using Choices = std::vector<std::pair<std::string, std::string>>;
/// Returns {{"learning rate of group 0", "0.1"}, {"weight decay of group 0", "L2 0.01"}, …}.
[[nodiscard]] Choices rates_in_words(const std::vector<GroupInfo>& groups);

/// Says that somebody else makes the steps of an optimizer, in the words of the error for step().
struct StepsElsewhere {
  std::string where{};  ///< room and operation of the error: "ps.training"
  std::string why{};    ///< empty: nobody else makes them
};

/// The implementation behind an Optimizer. Derive from it to wrap another optimizer, as fleet does.
class OptimizerImpl {
 public:
  virtual ~OptimizerImpl() = default;
  virtual void step() = 0;
  virtual void zero_grad(const ZeroGradOptions& options) = 0;
  [[nodiscard]] virtual const engine::NamedTensors& parameters() const = 0;
  [[nodiscard]] virtual const std::vector<GroupInfo>& groups() const = 0;
  virtual void set_group_lr(std::size_t group, double lr) = 0;
  virtual void add_param_group(const engine::NamedTensors& parameters, const ParamGroup& group) = 0;
  /// "AdamW". Unlike state_dict(), never collective.
  [[nodiscard]] virtual std::string name() const { return state_dict().optimizer; }
  /// The options beside rates and weight decay, for records of a run.
  [[nodiscard]] virtual Choices choices() const { return {}; }
  [[nodiscard]] virtual OptimizerState state_dict() const = 0;
  virtual void load_state_dict(const OptimizerState& state) = 0;
  /// Returns the number of state tensors per parameter, or nullopt if divide() is not supported.
  [[nodiscard]] virtual std::optional<std::size_t> states_per_parameter() const { return {}; }
  /// Divides steps from now on; nullptr ends it. The state moves in the next step.
  /// Errors: UsageError between step_early() and step().
  virtual void divide(const std::shared_ptr<StepDivision>& /*division*/) {}
  /// True if shard() is supported.
  [[nodiscard]] virtual bool can_shard() const { return false; }
  /// Lets each process update its part from now on, by the gradients of that part; nullptr ends
  /// it. Collective if it was so before, because the state then becomes whole. Errors: as divide().
  virtual void shard(const std::shared_ptr<ShardedStep>& /*step*/) {}
  /// nullptr: this process has all gradients.
  [[nodiscard]] virtual const ShardedStep* sharded() const { return nullptr; }
  /// True if each parameter's update needs only its own gradient, so that step_early() can be used.
  [[nodiscard]] virtual bool can_step_early() const { return false; }
  /// Updates the parameters of this optimizer among `parameters`, before the step() that completes
  /// the step. It may run in another thread than step(), but not at the same time.
  virtual void step_early(std::span<const at::Tensor> /*parameters*/) {}
  /// True if step_early() has begun a step.
  [[nodiscard]] virtual bool stepped_early() const { return false; }
  /// True if gradients of several passes are kept between calls of step(), so that nobody else may
  /// change them between.
  [[nodiscard]] virtual bool gathers_gradients() const { return false; }
  /// Tells the loss of the update that the next step() makes, of this rank, to an optimizer that
  /// goes by it (adaptive_localsgd).
  virtual void note_loss(double /*loss*/) {}
  /// Collective, between two steps: where each rank trains weights of its own for some steps
  /// (localsgd, diloco), puts what the ranks have together into the parameters, or each rank's own
  /// again. Elsewhere it does nothing. Returns what was in use before.
  virtual bool use_shared_weights(bool /*shared*/) { return false; }
  /// Tells that somebody else has given the parameters new values, alike on all ranks, between two
  /// steps: weights from a file, say. What an optimizer remembers of the old weights (diloco,
  /// localsgd) ends; the state of its steps stays.
  virtual void weights_replaced() {}
  /// Lets every later step() throw a UsageError with these words; an empty `why` ends that.
  virtual void hand_over_steps(const StepsElsewhere& /*to*/) {}
  /// Ends a step that step_early() began in a backward that failed. Updated parameters stay
  /// updated, the rest of the step is not made, and no other process writes into the parameters
  /// from then on.
  virtual void abandon_step() noexcept {}
};

/// True if both update the same parameter.
[[nodiscard]] bool have_parameters_in_common(const OptimizerImpl& a, const OptimizerImpl& b);

/// Updates parameters from their gradients. An Optimizer is a handle: copies are the same
/// optimizer.
///
///     optim::Adam optimizer(model, {.lr = 1e-3});
///     loss.backward();
///     optimizer.step();
///     optimizer.zero_grad();
///
/// SGD, Momentum, Adam, AdamW and others make one from anything with named parameters
/// (engine::named_parameters). A parameter with two names (tied weights) counts once, under the
/// first. Parameters are dense f32 or f64 tensors, including 0-dim, empty and channels_last ones.
/// step() uses the intra-op threads (at::get_num_threads()) and gives the same bits with any number
/// of them. On another device than the CPU, step() uses a few of libtorch's operators per
/// parameter, in the same order of rounding, and keeps its state there. Not thread-safe.
class Optimizer {
 public:
  explicit Optimizer(std::shared_ptr<OptimizerImpl> impl);

  /// Updates every parameter that has a gradient and requires one. The others stay unchanged.
  /// Errors: UsageError naming the parameter (sparse gradient, unsupported dtype).
  /// Cost: one pass over parameters, gradients and state. It first copies a gradient whose strides
  /// differ from its parameter's. A parameter with gaps is copied to dense memory and back.
  void step();

  /// Drops the gradients, or zeroes them in place, views of buckets included.
  void zero_grad(const ZeroGradOptions& options = {});

  /// All parameters with their names, in the order of registration.
  [[nodiscard]] const engine::NamedTensors& parameters() const;

  [[nodiscard]] const std::vector<GroupInfo>& param_groups() const;
  /// Adds parameters with names that the optimizer does not have yet.
  template <engine::NamedParameterSource T>
  void add_param_group(const T& source, const ParamGroup& group = {}) {
    impl_->add_param_group(engine::named_parameters(source), group);
  }

  /// Learning rate of the first group.
  [[nodiscard]] double lr() const;
  /// Sets every group to `lr` times its lr_scale.
  void set_lr(double lr);
  void set_group_lr(std::size_t group, double lr);

  /// See OptimizerImpl::note_loss(), use_shared_weights() and weights_replaced().
  void note_loss(double loss) { impl_->note_loss(loss); }
  bool use_shared_weights(bool shared) { return impl_->use_shared_weights(shared); }
  void weights_replaced() { impl_->weights_replaced(); }

  [[nodiscard]] OptimizerState state_dict() const;
  /// Loads state and learning rates, all or nothing. The other options stay as constructed. The
  /// order of the parameters may differ, their names and groups may not.
  /// Errors: CheckpointError that lists every missing, unexpected and mismatched entry. State that
  /// this optimizer does not use (amsgrad's, momentum's) is unexpected: PyTorch loads the saved
  /// options too and continues with the saved algorithm, so dropping the state would change the
  /// algorithm silently.
  void load_state_dict(const OptimizerState& state);

  [[nodiscard]] const std::shared_ptr<OptimizerImpl>& impl() const noexcept { return impl_; }

 private:
  std::shared_ptr<OptimizerImpl> impl_;
};

}  // namespace argosy::optim
