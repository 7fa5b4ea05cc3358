#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/optim/optimizer.h"

// Internal to the room: what virtual ranks of one process have of their own.
namespace argosy::parallel::traffic {

/// What each virtual rank of a process has of its own while they train apart: weights, gradients,
/// buffers, and what the optimizer remembers. One of them has its weights, gradients and buffers in
/// the model, the others' wait here. Before split() they are alike, as in the model.
///
/// Memory: all of it for each virtual rank of a process that has several; none for one. Not
/// thread-safe.
class OwnStates final {
 public:
  OwnStates(std::vector<at::Tensor> weights, std::shared_ptr<optim::OptimizerImpl> optimizer)
      : weights_(std::move(weights)), optimizer_(std::move(optimizer)) {}

  [[nodiscard]] int64_t count() const { return count_; }
  /// Makes them alike, as the model is. `count`: virtual ranks of this process, at least 1.
  void join(int64_t count);
  /// True if each has its own, or there is only one.
  [[nodiscard]] bool are_split() const { return count_ == 1 || !leaves_.empty(); }
  /// Gives each what the model and the optimizer have. `buffers`: the model's.
  void split(std::vector<at::Tensor> buffers);

  /// Puts what this one has into the model.
  void use(int64_t leaf);
  /// Returns which one is there.
  [[nodiscard]] int64_t in_model() const { return in_model_; }
  /// Leaves the first in the model.
  void end_passes();
  /// Clears the others' gradients of parameters whose gradient somebody has cleared in the model
  /// since the end of the passes or of step(), as Module::zero_grad() does.
  void follow_cleared_gradients();
  /// Makes a step of each, and leaves the first in the model.
  void step();
  /// Drops or zeroes the gradients of those that wait.
  void zero_grad(const optim::ZeroGradOptions& options);

  /// The model's own tensors for the one that is in it.
  [[nodiscard]] const std::vector<at::Tensor>& weights(int64_t leaf) const;
  [[nodiscard]] std::vector<at::Tensor> buffers(int64_t leaf) const;
  [[nodiscard]] optim::OptimizerState memory(int64_t leaf) const;
  /// After split(): what it remembers from now on.
  void load_memory(int64_t leaf, const optim::OptimizerState& memory);
  /// Gives all what the model has, whoever's that was.
  void replace();
  /// Gives all the model's weights, or buffers.
  void share_weights();
  void share_buffers();

 private:
  struct Leaf {
    std::vector<at::Tensor> weights{}, gradients{}, buffers{};
    optim::OptimizerState memory{};
  };

  /// Copies of those in the model.
  [[nodiscard]] std::vector<at::Tensor> gradients() const;
  void put_away(Leaf& leaf) const;
  void take_out(Leaf& leaf) const;
  void remember(int64_t leaf);

  std::vector<at::Tensor> weights_;
  std::vector<at::Tensor> buffers_{};
  std::shared_ptr<optim::OptimizerImpl> optimizer_;
  int64_t count_ = 1;
  std::vector<Leaf> leaves_{};                       // empty: alike
  std::vector<std::optional<uint32_t>> versions_{};  // of the model's gradients after step()
  int64_t in_model_ = 0;
  int64_t in_optimizer_ = 0;
};

}  // namespace argosy::parallel::traffic
