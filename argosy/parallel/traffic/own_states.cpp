#include "argosy/parallel/traffic/own_states.h"

#include <utility>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

namespace argosy::parallel::traffic {
namespace {

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& tensor : tensors) {
    all.push_back(tensor.detach().clone());
  }
  return all;
}

void copy(const std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
  for (size_t i = 0; i < to.size(); ++i) {
    to[i].detach().copy_(from[i].detach());
  }
}

std::optional<uint32_t> version_of(const at::Tensor& gradient) {
  return gradient.defined() ? std::optional(static_cast<uint32_t>(gradient._version()))
                            : std::nullopt;
}

/// Unseen by autograd, so that graphs that saved a buffer stay valid.
void set_buffers(const std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
  for (size_t i = 0; i < to.size(); ++i) {
    to[i].variable_data().copy_(from[i]);
  }
}

}  // namespace

void OwnStates::join(int64_t count) {
  count_ = count;
  leaves_.clear();
  versions_.clear();
  in_model_ = in_optimizer_ = 0;
}

void OwnStates::split(std::vector<at::Tensor> buffers) {
  if (are_split()) {
    return;
  }
  const at::NoGradGuard no_grad;
  buffers_ = std::move(buffers);
  leaves_.resize(static_cast<size_t>(count_));
  const optim::OptimizerState memory = optimizer_->state_dict().clone();
  for (Leaf& leaf : leaves_) {
    leaf = {.weights = copies(weights_),
            .gradients = gradients(),
            .buffers = copies(buffers_),
            .memory = memory};
  }
}

std::vector<at::Tensor> OwnStates::gradients() const {
  std::vector<at::Tensor> all;
  for (const at::Tensor& weight : weights_) {
    all.push_back(weight.grad().defined() ? weight.grad().clone() : at::Tensor());
  }
  return all;
}

void OwnStates::put_away(Leaf& leaf) const {
  copy(leaf.weights, weights_);
  copy(leaf.buffers, buffers_);
  for (size_t i = 0; i < weights_.size(); ++i) {
    leaf.gradients[i] = std::exchange(weights_[i].mutable_grad(), at::Tensor());
  }
}

void OwnStates::take_out(Leaf& leaf) const {
  copy(weights_, leaf.weights);
  set_buffers(buffers_, leaf.buffers);
  for (size_t i = 0; i < weights_.size(); ++i) {
    weights_[i].mutable_grad() = std::exchange(leaf.gradients[i], at::Tensor());
  }
}

void OwnStates::use(int64_t leaf) {
  if (leaves_.empty() || leaf == in_model_) {
    return;
  }
  const at::NoGradGuard no_grad;
  put_away(leaves_[static_cast<size_t>(in_model_)]);
  take_out(leaves_[static_cast<size_t>(leaf)]);
  in_model_ = leaf;
}

void OwnStates::follow_cleared_gradients() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < versions_.size(); ++i) {
    const at::Tensor& gradient = weights_[i].grad();
    if (version_of(gradient) == versions_[i]) {
      continue;
    }
    for (Leaf& leaf : leaves_) {
      if (!gradient.defined()) {
        leaf.gradients[i] = at::Tensor();
      } else if (leaf.gradients[i].defined()) {
        leaf.gradients[i].zero_();
      }
    }
  }
}

/// Rates are not a virtual rank's own. What is loaded is copied, so what was there stays its own.
void OwnStates::remember(int64_t leaf) {
  if (leaves_.empty() || leaf == in_optimizer_) {
    return;
  }
  leaves_[static_cast<size_t>(in_optimizer_)].memory = optimizer_->state_dict();
  optim::OptimizerState next = std::exchange(leaves_[static_cast<size_t>(leaf)].memory, {});
  next.groups = optimizer_->groups();
  optimizer_->load_state_dict(next);
  in_optimizer_ = leaf;
}

void OwnStates::step() {
  for (int64_t leaf = 0; leaf < count_; ++leaf) {
    use(leaf);
    remember(leaf);
    optimizer_->step();
  }
  end_passes();
}

void OwnStates::end_passes() {
  use(0);
  versions_.clear();
  for (const at::Tensor& weight : weights_) {
    versions_.push_back(version_of(weight.grad()));
  }
}

void OwnStates::zero_grad(const optim::ZeroGradOptions& options) {
  const at::NoGradGuard no_grad;
  for (Leaf& leaf : leaves_) {
    for (at::Tensor& gradient : leaf.gradients) {
      if (options.set_to_none) {
        gradient = at::Tensor();
      } else if (gradient.defined()) {
        gradient.zero_();
      }
    }
  }
}

const std::vector<at::Tensor>& OwnStates::weights(int64_t leaf) const {
  return leaves_.empty() || leaf == in_model_ ? weights_
                                              : leaves_[static_cast<size_t>(leaf)].weights;
}

std::vector<at::Tensor> OwnStates::buffers(int64_t leaf) const {
  return leaves_.empty() || leaf == in_model_ ? buffers_
                                              : leaves_[static_cast<size_t>(leaf)].buffers;
}

optim::OptimizerState OwnStates::memory(int64_t leaf) const {
  return leaves_.empty() || leaf == in_optimizer_ ? optimizer_->state_dict()
                                                  : leaves_[static_cast<size_t>(leaf)].memory;
}

void OwnStates::load_memory(int64_t leaf, const optim::OptimizerState& memory) {
  remember(leaf);
  optimizer_->load_state_dict(memory);
}

void OwnStates::replace() {
  in_model_ = 0;
  share_weights();
  share_buffers();
}

void OwnStates::share_weights() {
  const at::NoGradGuard no_grad;
  for (Leaf& leaf : leaves_) {
    copy(leaf.weights, weights_);
  }
}

void OwnStates::share_buffers() {
  const at::NoGradGuard no_grad;
  for (Leaf& leaf : leaves_) {
    copy(leaf.buffers, buffers_);
  }
}

}  // namespace argosy::parallel::traffic
