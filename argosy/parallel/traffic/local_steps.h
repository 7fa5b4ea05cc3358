#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/optim/forwarding_optimizer.h"
#include "argosy/parallel/ddp/core.h"

namespace argosy::parallel {

/// An optimizer whose ranks train weights of their own for some steps, and then sum them up: the
/// base of LocalSgd and Diloco, which say when and how. While ranks are apart, the wrapper's
/// backward passes average nothing.
///
/// Its state_dict() has what is a rank's own, its weights and the inner optimizer's state, as one
/// tensor [ranks, elements] for each, "rank.weights" of a parameter and "rank.exp_avg", say.
/// load_state_dict() writes the rank's weights into the parameters: load the model before. After
/// other weights were loaded call weights_replaced(), on all ranks; train::Model::load() does.
class LocalSteps : public optim::ForwardingOptimizer {
 public:
  ~LocalSteps() override;
  LocalSteps(const LocalSteps&) = delete;
  LocalSteps& operator=(const LocalSteps&) = delete;
  LocalSteps(LocalSteps&&) = delete;
  LocalSteps& operator=(LocalSteps&&) = delete;

  /// Collective where it sums.
  void step() final;
  void add_param_group(const engine::NamedTensors& parameters,
                       const optim::ParamGroup& group) final;
  [[nodiscard]] optim::Choices choices() const final;
  [[nodiscard]] optim::OptimizerState state_dict() const final;
  void load_state_dict(const optim::OptimizerState& state) final;
  bool use_shared_weights(bool shared) final;
  void weights_replaced() final;

  /// Returns the number of steps that were made.
  [[nodiscard]] int64_t steps() const { return steps_; }

 protected:
  LocalSteps(const std::shared_ptr<ddp::Core>& model,
             std::shared_ptr<optim::OptimizerImpl> inner,
             std::string name);

  /// Comes before each step of this rank.
  virtual void before_step() {}
  /// Comes after each step of this rank.
  virtual void after_step() = 0;
  /// Forgets what it remembers of the weights, which somebody has replaced.
  virtual void forget_weights() {}
  /// What all ranks have alike. Names begin with prefix().
  virtual void add_shared_state(optim::OptimizerState& state) const = 0;
  /// Takes it out of `state`, changes nothing else, and returns what puts it in place: steps() is
  /// the saved one by then. Errors: CheckpointError.
  [[nodiscard]] virtual std::function<void()> read_shared_state(optim::OptimizerState& state) = 0;

  [[nodiscard]] const comm::Group& group() const { return group_; }
  [[nodiscard]] std::string prefix() const { return name_ + "."; }
  [[nodiscard]] const std::vector<at::Tensor>& weights() const { return weights_; }
  void set_apart(bool apart);
  [[nodiscard]] bool is_apart() const { return apart_; }
  /// Rank 0's running statistics on all ranks, as where gradients are averaged.
  void sync_buffers() const;

 private:
  std::weak_ptr<ddp::Core> model_;
  comm::Group group_;
  std::string name_;
  std::vector<at::Tensor> weights_{};
  std::optional<std::vector<at::Tensor>> own_{};  // while the shared ones are in their place
  int64_t steps_ = 0;
  bool apart_ = false;
};

}  // namespace argosy::parallel
