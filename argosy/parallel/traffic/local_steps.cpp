#include "argosy/parallel/traffic/local_steps.h"

#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "argosy/base/check.h"
#include "argosy/parallel/traffic/flat_values.h"
#include "argosy/parallel/traffic/rank_state.h"

namespace argosy::parallel {
namespace {

constexpr const char* kOfRank = "rank.";
constexpr const char* kWeights = "weights";

/// The state of this rank's optimizer, of what a rank alone has.
void load_own_rows(optim::OptimizerState& state,
                   const engine::NamedTensors& parameters,
                   const comm::Group& group) {
  const auto rows = traffic::taken_out(state, kOfRank);
  for (const auto& [name, parameter] : parameters) {
    const auto found = rows.find(name);
    if (found == rows.end()) {
      continue;
    }
    for (const auto& [entry, saved] : found->second) {
      const at::Tensor own = at::empty(parameter.sizes(), saved.options().device(at::kCPU));
      traffic::take_row(own.view({-1}), saved, group, name + "/" + kOfRank + entry);
      if (entry == kWeights) {
        const at::NoGradGuard no_grad;
        parameter.detach().copy_(own);
      } else {
        traffic::entries_of(state, name).set(entry, own);
      }
    }
  }
}

}  // namespace

LocalSteps::LocalSteps(const std::shared_ptr<ddp::Core>& model,
                       std::shared_ptr<optim::OptimizerImpl> inner,
                       std::string name)
    : ForwardingOptimizer(std::move(inner)),
      model_(model),
      group_(model->group()),
      name_(std::move(name)) {
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

void LocalSteps::load_state_dict(const optim::OptimizerState& state) {
  own_.reset();
  optim::OptimizerState own = state;
  const auto& first = parameters().front().first;
  const engine::StateDict* entries = own.find(first);
  const at::Tensor* steps = entries == nullptr ? nullptr : entries->find(prefix() + "steps");
  steps_ = steps == nullptr ? 0 : steps->item<int64_t>();
  take_shared_state(own);
  load_own_rows(own, parameters(), group_);
  inner()->load_state_dict(own);
}

}  // namespace argosy::parallel
