#include "argosy/parallel/traffic/local_sgd.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/optim/flat_optimizer.h"
#include "argosy/parallel/traffic/rank_state.h"

namespace argosy::parallel {
namespace {

constexpr const char* kLocalSgd = "parallel.localsgd";
constexpr int64_t kMostSteps = 16;  // Paddle's

const std::shared_ptr<optim::OptimizerImpl>& checked_rule(
    const std::shared_ptr<optim::OptimizerImpl>& inner) {
  LocalSgd::check_optimizer(*inner);
  return inner;
}

template <typename Options>
const Options& validated(const Options& options) {
  options.validate();
  return options;
}

void say_when(const comm::Group& group, int64_t k_steps, int64_t begin_step, bool adapts) {
  if (group.rank() == 0) {
    log::info(
        "[parallel.localsgd] gradients are averaged up to update {}, then weights every {} "
        "updates{}",
        begin_step,
        k_steps,
        adapts ? " at first, and as often as the loss says later" : "");
  }
}

at::Tensor number_tensor(double number) {
  return at::full({}, number, at::kDouble);
}

}  // namespace

void LocalSgd::check_optimizer(const optim::OptimizerImpl& inner) {
  const std::string rule = optim::settings_of(inner).value_or(optim::FlatSettings{}).rule;
  ARGOSY_CHECK(rule == "SGD" || rule == "Momentum",
               kLocalSgd,
               "localsgd and adaptive_localsgd average weights of optim::SGD and optim::Momentum: "
               "got {}, whose state would not fit the averaged weights. Give it one of these, or "
               "take diloco, which goes with any optimizer.",
               rule.empty() ? inner.name() : rule);
}

LocalSgd::LocalSgd(const std::shared_ptr<ddp::Core>& model,
                   const std::shared_ptr<optim::OptimizerImpl>& inner,
                   const LocalSgdOptions& options)
    : LocalSteps(model, checked_rule(inner), "localsgd"),
      first_k_steps_(validated(options).k_steps),
      begin_step_(options.begin_step),
      k_steps_(options.k_steps) {
  say_when(group(), first_k_steps_, begin_step_, adapts_);
}

LocalSgd::LocalSgd(const std::shared_ptr<ddp::Core>& model,
                   const std::shared_ptr<optim::OptimizerImpl>& inner,
                   const AdaptiveLocalSgdOptions& options)
    : LocalSteps(model, checked_rule(inner), "localsgd"),
      adapts_(true),
      first_k_steps_(validated(options).init_k_steps),
      begin_step_(options.begin_step),
      k_steps_(options.init_k_steps) {
  say_when(group(), first_k_steps_, begin_step_, adapts_);
}

void LocalSgd::after_step() {
  if (deal()->leaves() == 1) {
    return;
  }
  if (steps() == begin_step_) {
    begin();
  } else if (is_apart() && steps() - last_ >= k_steps_) {
    average();
  }
  losses_.clear();
}

/// The ranks have the same weights here.
void LocalSgd::begin() {
  if (adapts_) {
    first_loss_ = mean_loss();
    first_lr_ = groups().front().lr;
  }
  last_ = steps();
  set_apart(true);
}

void LocalSgd::average() {
  const double loss = adapts_ ? mean_loss() : 0;
  average_weights();
  sync_buffers();
  last_ = steps();
  if (adapts_) {
    choose(loss);
  }
}

void LocalSgd::choose(double mean_loss) {
  const double lr = groups().front().lr;
  const double steps = std::ceil(
      std::sqrt(first_lr_ * mean_loss / (lr * first_loss_) * static_cast<double>(first_k_steps_)));
  const double most = static_cast<double>(kMostSteps);
  k_steps_ = std::isfinite(steps) ? static_cast<int64_t>(std::clamp(steps, 1.0, most)) : 1;
}

void LocalSgd::note_loss(double loss) {
  losses_.resize(static_cast<size_t>(leaves()));
  losses_[static_cast<size_t>(leaf_of_pass())] = loss;
}

/// Of all virtual ranks. It may be NaN, and choose() knows it.
double LocalSgd::mean_loss() const {
  std::vector<double> losses;
  for (int64_t leaf = 0; leaf < leaves(); ++leaf) {
    const auto place = static_cast<size_t>(leaf);
    ARGOSY_CHECK(place < losses_.size() && losses_[place].has_value(),
                 kLocalSgd,
                 "adaptive_localsgd goes by the loss, and none was told for step {}. Call "
                 "optimizer.note_loss(loss.item<double>()) before each step(), after each virtual "
                 "rank's pass; fit() does.",
                 steps());
    losses.push_back(*losses_[place]);
  }
  return mean_of(losses);
}

void LocalSgd::add_shared_state(optim::OptimizerState& state) const {
  engine::StateDict& entries = traffic::entries_of(state, parameters().front().first);
  entries.set(prefix() + "last", traffic::count_tensor(last_));
  entries.set(prefix() + "k_steps", traffic::count_tensor(k_steps_));
  entries.set(prefix() + "first_loss", number_tensor(first_loss_));
  entries.set(prefix() + "first_lr", number_tensor(first_lr_));
}

std::function<void()> LocalSgd::read_shared_state(optim::OptimizerState& state) {
  const auto taken = traffic::taken_out(state, prefix());
  const auto found = taken.find(parameters().front().first);
  int64_t last = 0, k_steps = first_k_steps_;
  double first_loss = first_loss_, first_lr = first_lr_;
  if (found != taken.end()) {
    last = traffic::count_in(found->second, "last");
    k_steps = adapts_ ? traffic::count_in(found->second, "k_steps") : first_k_steps_;
    first_loss = found->second.at("first_loss").item<double>();
    first_lr = found->second.at("first_lr").item<double>();
  }
  return [this, last, k_steps, first_loss, first_lr] {
    last_ = last;
    k_steps_ = k_steps;
    first_loss_ = first_loss;
    first_lr_ = first_lr;
    set_apart(steps() >= begin_step_ && deal()->leaves() > 1);
  };
}

}  // namespace argosy::parallel
