#include "argosy/optim/ema.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <unordered_set>

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include "argosy/base/check.h"

namespace argosy::optim {
namespace {

constexpr const char* kEmaWhere = "optim.ExponentialMovingAverage";

bool fits(const at::Tensor& own, const at::Tensor* given) {
  return given != nullptr && given->defined() && given->sizes() == own.sizes() &&
         given->scalar_type() == own.scalar_type();
}

}  // namespace

ExponentialMovingAverage::ExponentialMovingAverage(const engine::NamedTensors& parameters,
                                                   const engine::NamedTensors& buffers,
                                                   const ExponentialMovingAverageOptions& options)
    : options_(options) {
  ARGOSY_CHECK(options.decay >= 0 && options.decay <= 1,
               kEmaWhere,
               "decay must be in [0, 1], got {}",
               options.decay);
  ARGOSY_CHECK(!parameters.empty(), kEmaWhere, "there are no parameters to average");
  add(parameters);
  add(buffers);
}

// Tied weights count once, under the first name.
void ExponentialMovingAverage::add(const engine::NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    const bool known = std::ranges::any_of(
        own_, [&own = tensor](const auto& entry) { return entry.second.is_same(own); });
    if (tensor.defined() && !known) {
      own_.emplace_back(name, tensor);
      averages_.push_back(tensor.detach().clone());
    }
  }
}

void ExponentialMovingAverage::update() {
  ARGOSY_CHECK(!applied(),
               kEmaWhere,
               "update() while the average is applied. Call restore() first, or end the scope of "
               "Averaged.");
  const c10::NoGradGuard no_grad;
  const auto n = static_cast<double>(num_updates_);
  const double decay = options_.warmup == EmaWarmup::kNumUpdates
                           ? std::min(options_.decay, (1 + n) / (10 + n))
                           : options_.decay;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    if (num_updates_ == 0 || !averages_[i].is_floating_point()) {
      averages_[i].copy_(own_[i].second);
    } else {
      averages_[i].lerp_(own_[i].second.detach(), 1 - decay);
    }
  }
  ++num_updates_;
}

void ExponentialMovingAverage::apply() {
  ARGOSY_CHECK(num_updates_ > 0, kEmaWhere, "there is no average before the first update()");
  ARGOSY_CHECK(!applied(), kEmaWhere, "the average is applied already. Call restore() first.");
  const c10::NoGradGuard no_grad;
  std::vector<at::Tensor> kept;
  for (const auto& [name, tensor] : own_) {
    kept.push_back(tensor.detach().clone());  // all memory is there before the first write
  }
  for (std::size_t i = 0; i < own_.size(); ++i) {
    own_[i].second.copy_(averages_[i]);
  }
  kept_ = std::move(kept);
}

void ExponentialMovingAverage::restore() noexcept {
  const c10::NoGradGuard no_grad;
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    own_[i].second.copy_(kept_[i]);
  }
  kept_.clear();
}

EmaState ExponentialMovingAverage::state_dict() const {
  EmaState state{.num_updates = num_updates_};
  for (std::size_t i = 0; i < own_.size(); ++i) {
    state.averages.set(own_[i].first, averages_[i]);
  }
  return state;
}

void ExponentialMovingAverage::load_state_dict(const EmaState& state) {
  std::vector<std::string> wrong;
  std::unordered_set<std::string> names;
  for (const auto& [name, tensor] : own_) {
    names.insert(name);
    if (!fits(tensor, state.averages.find(name))) {
      wrong.push_back(
          fmt::format("{} (missing, or not [{}])", name, fmt::join(tensor.sizes(), ", ")));
    }
  }
  for (const auto& [name, tensor] : state.averages) {
    if (!names.contains(name)) {
      wrong.push_back(name + " (unexpected)");
    }
  }
  if (!wrong.empty() || state.num_updates < 0) {
    throw CheckpointError(kEmaWhere,
                          fmt::format("the averages are not of this model: {}; {} updates",
                                      fmt::join(wrong, ", "),
                                      state.num_updates));
  }
  const c10::NoGradGuard no_grad;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    averages_[i].copy_(state.averages.at(own_[i].first));
  }
  num_updates_ = state.num_updates;
}

}  // namespace argosy::optim
