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
#include "argosy/parallel/traffic/own_states.h"
#include "argosy/parallel/traffic/rank_state.h"

namespace argosy::parallel {

/// An optimizer whose virtual ranks train weights of their own for some steps, and then sum them
/// up: the base of LocalSgd and Diloco, which say when and how. While they are apart, the wrapper's
/// backward passes average nothing.
///
/// A process with several virtual ranks puts the weights and buffers of each into the model before
/// its passes, and step() makes a step of each. Between updates the model is the first one's.
///
/// Its state_dict() has what is a virtual rank's own, its weights, buffers and the inner
/// optimizer's state, as one tensor [virtual ranks, elements] for each: "rank.weights" of a
/// parameter and "rank.exp_avg", say; a copy where a process has several. load_state_dict() writes
/// the weights into the parameters: load the model before. After other weights were loaded call
/// weights_replaced(), on all ranks; train::Model::load() does.
class LocalSteps : public optim::ForwardingOptimizer, private ddp::LeafFollower {
 public:
  ~LocalSteps() override;
  LocalSteps(const LocalSteps&) = delete;
  LocalSteps& operator=(const LocalSteps&) = delete;
  LocalSteps(LocalSteps&&) = delete;
  LocalSteps& operator=(LocalSteps&&) = delete;

  /// Collective where it sums.
  void step() final;
  /// Inside of the passes of an update it clears the gradients of their virtual rank, else of all.
  void zero_grad(const optim::ZeroGradOptions& options) final;
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

  /// Comes before each step.
  virtual void before_step() {}
  /// Comes after each step.
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
  /// Of all virtual ranks; their number here; whose passes come, or came last.
  [[nodiscard]] const traffic::Deal& deal() const { return deal_; }
  [[nodiscard]] int64_t leaves() const { return own_.count(); }
  [[nodiscard]] int64_t leaf_of_pass() const { return leaf_; }
  /// The model's parameters, and what a virtual rank has: the same tensors for one.
  [[nodiscard]] const std::vector<at::Tensor>& weights() const { return weights_; }
  [[nodiscard]] const std::vector<at::Tensor>& weights(int64_t leaf) const {
    return own_.weights(leaf);
  }
  /// Gives all virtual ranks the average of their weights. Collective.
  void average_weights();
  /// Averages a figure of each virtual rank of this process. Collective.
  [[nodiscard]] double mean_of(const std::vector<double>& of_leaves) const;
  void set_apart(bool apart);
  [[nodiscard]] bool is_apart() const { return apart_; }
  /// Virtual rank 0's running statistics for all, as where gradients are averaged.
  void sync_buffers();

 private:
  /// What the model has while the shared weights are in use.
  struct SetAside {
    std::vector<at::Tensor> weights{}, buffers{};
    int64_t leaf = 0;  ///< whose passes were under way
  };
  struct SavedRows;

  void begin_leaf(int64_t leaf) final;
  void end_passes() noexcept final;
  void deal_to(const traffic::Deal& deal) final;
  void split();
  [[nodiscard]] std::vector<at::Tensor> buffers() const;
  [[nodiscard]] at::Tensor mean_of_weights() const;
  [[nodiscard]] at::Tensor own_rows(const std::vector<at::Tensor>& of_leaves) const;
  void add_own_state(size_t parameter,
                     optim::OptimizerState& state,
                     const std::vector<optim::OptimizerState>& memories) const;
  void add_buffers(optim::OptimizerState& state) const;
  [[nodiscard]] SavedRows read_rows(optim::OptimizerState& state) const;
  void take_rows(const SavedRows& rows);

  std::weak_ptr<ddp::Core> model_;
  comm::Group group_;
  std::string name_;
  traffic::Deal deal_;
  std::vector<at::Tensor> weights_{};
  traffic::OwnStates own_;
  std::optional<SetAside> set_aside_{};
  int64_t leaf_ = 0;
  bool in_passes_ = false;
  int64_t steps_ = 0;
  bool apart_ = false;
};

}  // namespace argosy::parallel
