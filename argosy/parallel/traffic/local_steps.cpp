#include "argosy/parallel/traffic/local_steps.h"

#include <utility>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "argosy/base/check.h"
#include "argosy/parallel/traffic/flat_values.h"
#include "argosy/parallel/traffic/rank_state.h"

namespace argosy::parallel {
namespace {

constexpr const char* kOfRank = "rank.";
constexpr const char* kWeights = "weights";

/// Turns what a rank alone has into the state of this rank's optimizer. Returns the rank's weights,
/// undefined where none were saved.
std::vector<at::Tensor> read_own_rows(optim::OptimizerState& state,
                                      const engine::NamedTensors& parameters,
                                      const comm::Group& group) {
  const auto rows = traffic::taken_out(state, kOfRank);
  std::vector<at::Tensor> weights(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, parameter] = parameters[i];
    const auto found = rows.find(name);
    if (found == rows.end()) {
      continue;
    }
    for (const auto& [entry, saved] : found->second) {
      const at::Tensor own = at::empty(parameter.sizes(), saved.options().device(at::kCPU));
      traffic::take_row(own.view({-1}), saved, group, name + "/" + kOfRank + entry);
      if (entry == kWeights) {
        weights[i] = own;
      } else {
        traffic::entries_of(state, name).set(entry, own);
      }
    }
  }
  return weights;
}

}  // namespace

LocalSteps::LocalSteps(const std::shared_ptr<ddp::Core>& model,
                       std::shared_ptr<optim::OptimizerImpl> inner,
                       std::string name)
    : ForwardingOptimizer(std::move(inner)),
      model_(model),
      group_(model->group()),
      name_(std::move(name)) {
  model->check_has_all_parameters(*this, name_);
  for (const auto& [parameter, tensor] : parameters()) {
    weights_.push_back(tensor);
  }
}

LocalSteps::~LocalSteps() {
  if (const auto model = model_.lock(); model != nullptr && apart_) {
    try {
      model->set_apart(false);
    } catch (const std::exception&) {  // in a join(), which ends with an error of its own
    }
  }
}

void LocalSteps::step() {
  ARGOSY_CHECK(
      !own_.has_value(),
      "parallel.local_steps",
      "a step was made while the shared weights are in use. Call use_shared_weights(false) "
      "before, on all ranks.");
  before_step();
  inner()->step();
  ++steps_;
  after_step();
}

void LocalSteps::add_param_group(const engine::NamedTensors& /*parameters*/,
                                 const optim::ParamGroup& /*group*/) {
  throw UsageError("parallel.local_steps",
                   "parameters cannot be added to an optimizer whose ranks train weights of their "
                   "own. Give it all parameters when it is made.");
}

optim::Choices LocalSteps::choices() const {
  optim::Choices choices = inner()->choices();
  choices.emplace_back("weights by", name_);
  return choices;
}

void LocalSteps::set_apart(bool apart) {
  if (apart == apart_) {
    return;
  }
  if (const auto model = model_.lock()) {
    model->set_apart(apart);
  }
  apart_ = apart;
}

void LocalSteps::sync_buffers() const {
  if (const auto model = model_.lock()) {
    model->sync_buffers();
  }
}

bool LocalSteps::use_shared_weights(bool shared) {
  const bool before = own_.has_value();
  if (!apart_ || shared == before) {
    return before;
  }
  const at::NoGradGuard no_grad;
  if (shared) {
    std::vector<at::Tensor> own;
    for (const at::Tensor& weight : weights_) {
      own.push_back(weight.detach().clone());
    }
    std::vector<double> none;
    traffic::average_values(weights_, none, group_);
    own_ = std::move(own);
  } else {
    for (size_t i = 0; i < weights_.size(); ++i) {
      weights_[i].detach().copy_((*own_)[i]);
    }
    own_.reset();
  }
  return before;
}

void LocalSteps::weights_replaced() {
  own_.reset();
  forget_weights();
  inner()->weights_replaced();
}

optim::OptimizerState LocalSteps::state_dict() const {
  optim::OptimizerState state = inner()->state_dict();
  for (size_t i = 0; i < weights_.size(); ++i) {
    engine::StateDict& entries = traffic::entries_of(state, parameters()[i].first);
    engine::StateDict all;
    const at::Tensor own = own_.has_value() ? (*own_)[i] : weights_[i];
    for (const auto& [entry, tensor] : entries) {
      const bool is_own = tensor.sizes() == own.sizes() && entry != "step";
      all.set(is_own ? kOfRank + entry : entry,
              is_own ? traffic::rows_of_ranks(tensor.contiguous(), group_) : tensor);
    }
    all.set(std::string(kOfRank) + kWeights,
            traffic::rows_of_ranks(own.detach().contiguous(), group_));
    entries = std::move(all);
  }
  traffic::entries_of(state, parameters().front().first)
      .set(prefix() + "steps", traffic::count_tensor(steps_));
  add_shared_state(state);
  return state;
}

/// All or nothing: it reads and checks before it changes anything.
void LocalSteps::load_state_dict(const optim::OptimizerState& state) {
  optim::OptimizerState own = state;
  const auto& first = parameters().front().first;
  const engine::StateDict* entries = own.find(first);
  const at::Tensor* steps = entries == nullptr ? nullptr : entries->find(prefix() + "steps");
  const int64_t saved_steps = steps == nullptr ? 0 : steps->item<int64_t>();
  const std::function<void()> take_shared_state = read_shared_state(own);
  const std::vector<at::Tensor> saved = read_own_rows(own, parameters(), group_);
  inner()->load_state_dict(own);
  own_.reset();
  steps_ = saved_steps;
  take_shared_state();
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (saved[i].defined()) {
      weights_[i].detach().copy_(saved[i]);
    }
  }
}

}  // namespace argosy::parallel
