#include "argosy/parallel/traffic/local_steps.h"

#include <map>
#include <string>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "argosy/base/check.h"
#include "argosy/parallel/traffic/flat_values.h"
#include "argosy/parallel/traffic/leaf_average.h"

namespace argosy::parallel {
namespace {

constexpr const char* kOfRank = "rank.";
constexpr const char* kWeights = "weights";
constexpr const char* kBuffer = "buffer.";  // and its number

std::vector<at::Tensor> parameters_of(const optim::OptimizerImpl& optimizer) {
  std::vector<at::Tensor> all;
  for (const auto& [name, tensor] : optimizer.parameters()) {
    all.push_back(tensor);
  }
  return all;
}

std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& tensor : tensors) {
    all.push_back(tensor.detach().clone());
  }
  return all;
}

/// True if both know the parameter, after as many steps, or neither does.
bool has_same_steps(const engine::StateDict* one, const engine::StateDict* other) {
  if (one == nullptr || other == nullptr) {
    return one == other;
  }
  const at::Tensor* const steps = one->find("step");
  const at::Tensor* const others = other->find("step");
  return steps == nullptr || others == nullptr ? steps == others : at::equal(*steps, *others);
}

void copy(const std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < to.size(); ++i) {
    to[i].detach().copy_(from[i]);
  }
}

}  // namespace

/// What was saved, of each virtual rank of this process.
struct LocalSteps::SavedRows {
  std::vector<std::vector<at::Tensor>> weights{};  // undefined where none were saved
  std::vector<std::vector<at::Tensor>> buffers{};
  std::vector<optim::OptimizerState> memories{};
};

LocalSteps::LocalSteps(const std::shared_ptr<ddp::Core>& model,
                       std::shared_ptr<optim::OptimizerImpl> inner,
                       std::string name)
    : ForwardingOptimizer(std::move(inner)),
      model_(model),
      group_(model->group()),
      name_(std::move(name)),
      deal_(model->deal()),
      weights_(parameters_of(*this)),
      own_(weights_, this->inner()) {
  model->check_has_all_parameters(*this, name_);
  model->check_can_be_apart();
  model->follow_leaves(*this);
}

LocalSteps::~LocalSteps() {
  const auto model = model_.lock();
  if (model == nullptr) {
    return;
  }
  model->unfollow_leaves(*this);
  if (apart_) {
    try {
      model->set_apart(false);
    } catch (const std::exception&) {  // in a join(), which ends with an error of its own
    }
  }
}

void LocalSteps::deal_to(const traffic::Deal& deal) {
  traffic::check_can_deal(name_, *deal_, *deal, steps_ > 0);
  deal_ = deal;
  own_.join(traffic::leaves_of(*deal, group_.rank()).size());
}

std::vector<at::Tensor> LocalSteps::buffers() const {
  const auto model = model_.lock();
  return model == nullptr ? std::vector<at::Tensor>() : model->buffers();
}

void LocalSteps::split() {
  if (!own_.are_split()) {
    own_.split(buffers());
  }
}

void LocalSteps::begin_leaf(int64_t leaf) {
  leaf_ = leaf;
  in_passes_ = true;
  if (!apart_ || set_aside_.has_value()) {  // with shared weights it may be another model's update
    return;
  }
  split();
  if (leaf == 0 && own_.in_model() == 0) {
    own_.follow_cleared_gradients();
  }
  own_.use(leaf);
}

void LocalSteps::end_passes() noexcept {
  in_passes_ = false;
  if (!set_aside_.has_value()) {
    own_.end_passes();
  }
}

void LocalSteps::step() {
  ARGOSY_CHECK(
      !set_aside_.has_value(),
      "parallel.local_steps",
      "a step was made while the shared weights are in use. Call use_shared_weights(false) "
      "before, on all ranks.");
  ARGOSY_CHECK(!in_passes_ || leaves() == 1,
               "parallel.local_steps",
               "a step was made inside of the passes of an update: of its virtual ranks some have "
               "made theirs, others not. Call step() after the loop over them");
  before_step();
  if (apart_) {
    split();
    own_.step();
  } else {
    inner()->step();
  }
  ++steps_;
  after_step();
}

void LocalSteps::zero_grad(const optim::ZeroGradOptions& options) {
  inner()->zero_grad(options);
  if (!in_passes_) {
    own_.zero_grad(options);
  }
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

void LocalSteps::sync_buffers() {
  if (const auto model = model_.lock()) {
    own_.use(0);
    model->broadcast_buffers();
    own_.share_buffers();
  }
}

at::Tensor LocalSteps::mean_of_weights() const {
  std::vector<at::Tensor> flat;
  for (int64_t leaf = 0; leaf < leaves(); ++leaf) {
    flat.push_back(traffic::flat_copy(own_.weights(leaf)));
  }
  const at::Tensor like = flat.front();
  const traffic::LeafAverage all = traffic::average_leaves(std::move(flat), like, deal_, group_);
  all.work.wait();
  return all.result;
}

double LocalSteps::mean_of(const std::vector<double>& of_leaves) const {
  std::vector<at::Tensor> numbers;
  for (const double figure : of_leaves) {
    numbers.push_back(at::full({1}, figure, at::kDouble));
  }
  const at::Tensor like = numbers.front();
  const traffic::LeafAverage all = traffic::average_leaves(std::move(numbers), like, deal_, group_);
  all.work.wait();
  return all.result.item<double>();
}

void LocalSteps::average_weights() {
  traffic::copy_back(mean_of_weights(), weights_);
  own_.share_weights();
}

/// With virtual rank 0's buffers, so that an evaluation has the same figures on any number of
/// processes.
bool LocalSteps::use_shared_weights(bool shared) {
  const bool before = set_aside_.has_value();
  if (!apart_ || shared == before) {
    return before;
  }
  if (shared) {
    split();
    const int64_t leaf = own_.in_model();
    own_.use(0);
    SetAside aside{.weights = copies(weights_), .buffers = copies(buffers()), .leaf = leaf};
    traffic::copy_back(mean_of_weights(), weights_);
    if (const auto model = model_.lock()) {
      model->broadcast_buffers();
    }
    set_aside_ = std::move(aside);
  } else {
    copy(weights_, set_aside_->weights);
    copy(buffers(), set_aside_->buffers);
    own_.use(set_aside_->leaf);
    set_aside_.reset();
  }
  return before;
}

void LocalSteps::weights_replaced() {
  set_aside_.reset();
  own_.replace();
  forget_weights();
  inner()->weights_replaced();
}

// --- State -------------------------------------------------------------------------------------

/// Of each virtual rank of this process, or of all if they are alike.
at::Tensor LocalSteps::own_rows(const std::vector<at::Tensor>& of_leaves) const {
  std::vector<at::Tensor> rows;
  for (const at::Tensor& each : of_leaves) {
    rows.push_back(each.detach().contiguous().view({1, -1}));
  }
  rows.resize(static_cast<size_t>(leaves()), rows.front());
  return traffic::rows_of_ranks(rows.size() == 1 ? rows.front() : at::cat(rows), deal_, group_);
}

optim::OptimizerState LocalSteps::state_dict() const {
  std::vector<optim::OptimizerState> memories;
  for (int64_t leaf = 0; leaf < leaves(); ++leaf) {
    memories.push_back(own_.memory(leaf));
  }
  optim::OptimizerState state = memories.front();
  state.groups = inner()->groups();  // rates are of now, and not a virtual rank's own
  for (size_t i = 0; i < weights_.size(); ++i) {
    add_own_state(i, state, memories);
  }
  if (apart_) {
    add_buffers(state);
  }
  traffic::entries_of(state, parameters().front().first)
      .set(prefix() + "steps", traffic::count_tensor(steps_));
  add_shared_state(state);
  return state;
}

void LocalSteps::add_own_state(size_t parameter,
                               optim::OptimizerState& state,
                               const std::vector<optim::OptimizerState>& memories) const {
  const std::string& name = parameters()[parameter].first;
  for (const optim::OptimizerState& memory : memories) {
    ARGOSY_CHECK(has_same_steps(memory.find(name), memories.front().find(name)),
                 "parallel.local_steps",
                 "parameter {} was trained on one virtual rank and not on another: let each pass "
                 "reach it, or freeze it",
                 name);
  }
  engine::StateDict& entries = traffic::entries_of(state, name);
  engine::StateDict all;
  for (const auto& [entry, tensor] : entries) {
    if (tensor.sizes() != weights_[parameter].sizes() || entry == "step") {
      all.set(entry, tensor);
      continue;
    }
    std::vector<at::Tensor> of_leaves;
    for (const optim::OptimizerState& memory : memories) {
      of_leaves.push_back(memory.find(name)->at(entry));
    }
    all.set(kOfRank + entry, own_rows(of_leaves));
  }
  std::vector<at::Tensor> own;
  for (int64_t leaf = 0; leaf < leaves(); ++leaf) {
    own.push_back(own_.weights(leaf)[parameter]);
  }
  if (set_aside_.has_value()) {
    own.front() = set_aside_->weights[parameter];
  }
  all.set(std::string(kOfRank) + kWeights, own_rows(own));
  entries = std::move(all);
}

void LocalSteps::add_buffers(optim::OptimizerState& state) const {
  engine::StateDict& entries = traffic::entries_of(state, parameters().front().first);
  const std::vector<at::Tensor> in_model = buffers();
  for (size_t i = 0; i < in_model.size(); ++i) {
    std::vector<at::Tensor> of_leaves;
    for (int64_t leaf = 0; leaf < leaves(); ++leaf) {
      const std::vector<at::Tensor> waiting = own_.buffers(leaf);
      of_leaves.push_back(waiting.empty() ? in_model[i] : waiting[i]);
    }
    if (set_aside_.has_value()) {
      of_leaves.front() = set_aside_->buffers[i];
    }
    entries.set(std::string(kOfRank) + kBuffer + std::to_string(i), own_rows(of_leaves));
  }
}

/// All or nothing: it reads and checks before it changes anything.
void LocalSteps::load_state_dict(const optim::OptimizerState& state) {
  optim::OptimizerState own = state;
  const auto& first = parameters().front().first;
  const engine::StateDict* entries = own.find(first);
  const at::Tensor* steps = entries == nullptr ? nullptr : entries->find(prefix() + "steps");
  const int64_t saved_steps = steps == nullptr ? 0 : steps->item<int64_t>();
  const std::function<void()> take_shared_state = read_shared_state(own);
  const SavedRows rows = read_rows(own);
  inner()->load_state_dict(rows.memories.front());
  set_aside_.reset();
  own_.join(leaves());
  steps_ = saved_steps;
  take_shared_state();
  take_rows(rows);
}

/// Turns what virtual ranks have of their own into the states of this process's.
LocalSteps::SavedRows LocalSteps::read_rows(optim::OptimizerState& state) const {
  const auto rows = traffic::taken_out(state, kOfRank);
  const std::vector<at::Tensor> model_buffers = buffers();
  const auto count = static_cast<size_t>(leaves());
  SavedRows saved;
  saved.weights.resize(count, std::vector<at::Tensor>(weights_.size()));
  saved.buffers.resize(count, std::vector<at::Tensor>(model_buffers.size()));
  saved.memories.resize(count, state);
  const auto read = [&](const at::Tensor& like, const at::Tensor& from, const std::string& what) {
    at::Tensor own = at::empty({leaves(), like.numel()}, from.options().device(at::kCPU));
    traffic::take_rows(own, from, deal_, group_, what);
    return own;
  };
  for (size_t i = 0; i < weights_.size(); ++i) {
    const auto& [name, parameter] = parameters()[i];
    const auto found = rows.find(name);
    if (found == rows.end()) {
      continue;
    }
    for (const auto& [entry, from] : found->second) {
      const bool is_buffer = entry.starts_with(kBuffer);
      const size_t buffer = is_buffer ? std::stoul(entry.substr(std::string(kBuffer).size())) : 0;
      if (is_buffer && buffer >= model_buffers.size()) {
        throw CheckpointError("parallel.local_steps",
                              "the checkpoint has more buffers than the model. It is of another "
                              "model: resume one of this model, or begin a new training",
                              {.key = name + "/" + kOfRank + entry});
      }
      const at::Tensor& like = is_buffer ? model_buffers[buffer] : parameter;
      const at::Tensor own = read(like, from, name + "/" + kOfRank + entry);
      for (size_t leaf = 0; leaf < count; ++leaf) {
        const at::Tensor row = own.select(0, static_cast<int64_t>(leaf)).view(like.sizes());
        if (is_buffer) {
          saved.buffers[leaf][buffer] = row;
        } else if (entry == kWeights) {
          saved.weights[leaf][i] = row;
        } else {
          traffic::entries_of(saved.memories[leaf], name).set(entry, row);
        }
      }
    }
  }
  return saved;
}

void LocalSteps::take_rows(const SavedRows& rows) {
  if (apart_) {
    split();
  }
  const int64_t count = apart_ ? leaves() : 1;
  for (int64_t leaf = count - 1; leaf >= 0; --leaf) {  // the first one's stay in the model
    own_.use(leaf);
    const auto place = static_cast<size_t>(leaf);
    if (leaf > 0) {
      own_.load_memory(leaf, rows.memories[place]);
    }
    const std::vector<at::Tensor> in_model = buffers();
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (rows.weights[place][i].defined()) {
        weights_[i].detach().copy_(rows.weights[place][i]);
      }
    }
    for (size_t i = 0; i < in_model.size(); ++i) {
      if (rows.buffers[place][i].defined()) {
        in_model[i].detach().copy_(rows.buffers[place][i]);
      }
    }
  }
}

}  // namespace argosy::parallel
