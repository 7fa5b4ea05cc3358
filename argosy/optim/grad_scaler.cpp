#include "argosy/optim/grad_scaler.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <string>

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/engine/coming_memory.h"
#include "argosy/optim/gradients.h"
#include "argosy/optim/kernels/norm.h"

namespace argosy::optim {
namespace {

thread_local std::weak_ptr<const double> scaled_by;
thread_local bool follows = false;  // scaled_by is another process's

bool is_scale(double scale) {
  const auto kept = static_cast<float>(scale);
  return std::isfinite(kept) && kept > 0;
}

/// What is wrong with these numbers; empty: nothing.
std::string fault(const GradScalerState& state) {
  if (!is_scale(state.scale)) {
    return fmt::format("the scale must be positive and finite in f32, got {}", state.scale);
  }
  if (!(state.growth_factor > 1 && std::isfinite(state.growth_factor))) {
    return fmt::format("growth_factor must be greater than 1, got {}", state.growth_factor);
  }
  if (!(state.backoff_factor > 0 && state.backoff_factor < 1)) {
    return fmt::format("backoff_factor must be between 0 and 1, got {}", state.backoff_factor);
  }
  if (state.growth_interval <= 0) {
    return fmt::format("growth_interval must be positive, got {}", state.growth_interval);
  }
  if (state.growth_tracker < 0) {
    return fmt::format("growth_tracker must not be negative, got {}", state.growth_tracker);
  }
  return {};
}

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options)
    : options_(options), scale_(static_cast<float>(options.init_scale)) {
  const std::string wrong = !options.enabled ? ""
                                             : fault({.scale = options.init_scale,
                                                      .growth_factor = options.growth_factor,
                                                      .backoff_factor = options.backoff_factor,
                                                      .growth_interval = options.growth_interval});
  ARGOSY_CHECK(wrong.empty(), "optim.GradScaler", "{}", wrong);
}

at::Tensor GradScaler::scale(const at::Tensor& loss) {
  if (!options_.enabled) {
    return loss;
  }
  begun_ = true;
  scaling_ = std::make_shared<const double>(scale_);
  const auto tell_thread = [scaling = std::weak_ptr<const double>(scaling_)] {
    scaled_by = scaling;
    follows = false;
  };
  tell_thread();
  const at::Tensor scaled =
      loss.mul(at::full({}, scale_, at::TensorOptions(at::kFloat).device(loss.device())));
  if (scaled.requires_grad()) {  // gradients of a device arrive in a thread of autograd's
    scaled.register_hook([tell_thread](const at::Tensor&) { tell_thread(); });
  }
  return scaled;
}

std::vector<at::Tensor> GradScaler::scale(const std::vector<at::Tensor>& losses) {
  std::vector<at::Tensor> scaled;
  for (const at::Tensor& loss : losses) {
    scaled.push_back(scale(loss));
  }
  return scaled;
}

void GradScaler::check_begun(const char* function) const {
  ARGOSY_CHECK(begun_ || (follows && !scaled_by.expired()),
               "optim.GradScaler",
               "{}() before the first scale(): the loss was not scaled. Call "
               "scaler.scale(loss).backward() first.",
               function);
}

GradScaler::Stage GradScaler::stage_of(const Optimizer& optimizer) const {
  const auto finding = findings_.find(optimizer.impl().get());
  return finding == findings_.end() ? Stage::kReady : finding->second.stage;
}

void GradScaler::unscale_(const Optimizer& optimizer) {
  if (!options_.enabled) {
    return;
  }
  check_begun("unscale_");
  const Stage stage = stage_of(optimizer);
  ARGOSY_CHECK(stage != Stage::kUnscaled,
               "optim.GradScaler",
               "unscale_() has already been called on this optimizer since the last update()");
  ARGOSY_CHECK(stage != Stage::kStepped, "optim.GradScaler", "unscale_() is called after step()");
  ARGOSY_CHECK(!optimizer.impl()->stepped_early(),
               "optim.GradScaler",
               "the optimizer has updated weights during backward already, with gradients that are "
               "still scaled. Leave out overlap_update, or the scaler.");
  ARGOSY_CHECK(
      !optimizer.impl()->gathers_gradients(),
      "optim.GradScaler",
      "the optimizer merges the gradients of several passes, which the scaler would unscale "
      "again at each. Leave out gradient_merge, or the scaler.");
  const ShardedStep* const divided = optimizer.impl()->sharded();
  const ShardedStep* const sharded =
      divided != nullptr && divided->has_whole_gradients() ? nullptr : divided;
  const std::vector<at::Tensor> grads =
      unique_gradients("optim.GradScaler", optimizer.parameters(), sharded);
  const engine::DirectUse use(sharded == nullptr ? grads : std::vector<at::Tensor>(),
                              /*writes=*/true);
  // In f64, as PyTorch does it; exact for powers of two.
  const auto factor = static_cast<float>(1 / static_cast<double>(scale_));
  std::atomic<bool> found = false;
  std::vector<at::Tensor> finite_on_device;
  over_elements(
      grads,
      [&](auto* data, std::size_t count) {
        if (kernels::unscale(data, count, factor)) {
          found.store(true, std::memory_order_relaxed);
        }
      },
      [&](const at::Tensor& grad) {
        finite_on_device.push_back(at::isfinite(grad).all());
        grad.mul_(factor);
      });
  if (std::ranges::count(fetch(finite_on_device), 0.0) > 0) {
    found = true;
  }
  if (sharded != nullptr) {
    std::vector<ExactSum> processes(1);
    processes.front().add(found ? 1 : 0);
    sharded->sum(processes);
    found = processes.front().value() > 0;
  }
  const Seen own{.gradients = !grads.empty(), .inf = found};
  findings_[optimizer.impl().get()] = {.stage = Stage::kUnscaled,
                                       .seen = agreement_ != nullptr ? agreement_(own) : own};
}

bool GradScaler::step(Optimizer& optimizer) {
  if (!options_.enabled) {
    optimizer.step();
    return true;
  }
  check_begun("step");
  const Stage stage = stage_of(optimizer);
  ARGOSY_CHECK(stage != Stage::kStepped,
               "optim.GradScaler",
               "step() has already been called on this optimizer since the last update()");
  if (stage == Stage::kReady) {
    unscale_(optimizer);
  }
  Finding& finding = findings_.at(optimizer.impl().get());
  ARGOSY_CHECK(finding.seen.gradients,
               "optim.GradScaler",
               "step(): no parameter of this optimizer has a gradient. Call "
               "scaler.scale(loss).backward() first, with the loss of its own model.");
  if (!finding.seen.inf) {
    optimizer.step();
  }
  finding.stage = Stage::kStepped;
  return !finding.seen.inf;
}

void GradScaler::update() {
  if (!options_.enabled) {
    return;
  }
  check_begun("update");
  const auto looked = [](const auto& each) { return each.second.seen.gradients; };
  ARGOSY_CHECK(std::ranges::any_of(findings_, looked),
               "optim.GradScaler",
               "update() without a step() or unscale_() since the last one: there is nothing to "
               "make the scale from");
  if (std::ranges::any_of(findings_, [](const auto& each) { return each.second.seen.inf; })) {
    scale_ = static_cast<float>(scale_ * options_.backoff_factor);
    growth_tracker_ = 0;
  } else if (++growth_tracker_ == options_.growth_interval) {
    const auto grown = static_cast<float>(scale_ * options_.growth_factor);
    scale_ = std::isfinite(grown) ? grown : scale_;
    growth_tracker_ = 0;
  }
  findings_.clear();
  scaling_.reset();
}

void GradScaler::update(double new_scale) {
  if (!options_.enabled) {
    return;
  }
  check_begun("update");
  ARGOSY_CHECK(is_scale(new_scale),
               "optim.GradScaler",
               "update(): the scale must be positive and finite in f32, got {}",
               new_scale);
  scale_ = static_cast<float>(new_scale);
  findings_.clear();
  scaling_.reset();
}

std::shared_ptr<const double> follow_loss_scale(double scale) {
  auto scaling = std::make_shared<const double>(scale);
  scaled_by = scaling;
  follows = true;
  return scaling;
}

std::optional<double> loss_scale_of_thread() noexcept {
  const std::shared_ptr<const double> scale = scaled_by.lock();
  return scale == nullptr ? std::nullopt : std::optional(*scale);
}

double GradScaler::get_scale() const {
  return options_.enabled ? scale_ : 1;
}

std::optional<bool> GradScaler::found_inf(const Optimizer& optimizer) const {
  const auto finding = findings_.find(optimizer.impl().get());
  return finding == findings_.end() ? std::nullopt : std::optional(finding->second.seen.inf);
}

GradScalerState GradScaler::state_dict() const {
  ARGOSY_CHECK(findings_.empty(),
               "optim.GradScaler",
               "state_dict() between unscale_() and update(): what was found out would be lost. "
               "Call it after update().");
  return {.scale = scale_,
          .growth_factor = options_.growth_factor,
          .backoff_factor = options_.backoff_factor,
          .growth_interval = options_.growth_interval,
          .growth_tracker = growth_tracker_};
}

void GradScaler::load_state_dict(const GradScalerState& state) {
  if (!options_.enabled) {
    return;
  }
  if (const std::string wrong = fault(state); !wrong.empty()) {
    throw CheckpointError("optim.GradScaler", "not where a scaler stands: " + wrong);
  }
  scale_ = static_cast<float>(state.scale);
  options_.growth_factor = state.growth_factor;
  options_.backoff_factor = state.backoff_factor;
  options_.growth_interval = state.growth_interval;
  growth_tracker_ = state.growth_tracker;
}

}  // namespace argosy::optim
