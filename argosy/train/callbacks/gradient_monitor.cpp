#include "argosy/train/callbacks/gradient_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/train/model.h"

namespace argosy::train {
namespace {

std::string how_broken(const at::Tensor& grad) {
  const auto nans = at::isnan(grad).sum().item<int64_t>();
  const auto infinities = at::isinf(grad).sum().item<int64_t>();
  return fmt::format("{} NaN, {} infinite of {} elements", nans, infinities, grad.numel());
}

}  // namespace

GradientMonitor::GradientMonitor(const GradientMonitorOptions& options)
    : options_(options), norm_(std::numeric_limits<double>::quiet_NaN()) {}

void GradientMonitor::on_before_update(const Step& step) {
  const c10::NoGradGuard no_grad;
  ARGOSY_CHECK(step.model.optimizer().impl()->sharded() == nullptr,
               "train.GradientMonitor",
               "with scatter_gradients a rank has the averages of a part of the gradients only. "
               "Leave out one of the two.");
  double squares = 0;
  std::vector<std::pair<std::string, double>> norms;
  for (const auto& [name, parameter] : step.model.parameters()) {
    const at::Tensor& grad = parameter.grad();
    if (!grad.defined()) {
      continue;
    }
    const auto norm = grad.norm().item<double>();
    squares += norm * norm;
    norms.emplace_back(name, norm);
    if (step.skipped || std::isfinite(norm) || at::isfinite(grad).all().item<bool>()) {
      continue;
    }
    const std::string what =
        fmt::format("the gradient of \"{}\" is not finite in step {} (epoch {}, batch {}): {}",
                    name,
                    step.step + 1,
                    step.epoch + 1,
                    step.batch + 1,
                    how_broken(grad));
    if (options_.on_non_finite == OnNonFinite::kRaise) {
      const bool too_late = step.model.optimizer().impl()->stepped_early();
      throw DataError(
          "train.GradientMonitor",
          fmt::format("{}. The weights {}. Look for a learning rate that is too high, a "
                      "division or logarithm of zero, or bad samples.",
                      what,
                      too_late ? "have it already: overlap_update moves them in backward"
                               : "are still those of the step before"));
    }
    if (options_.on_non_finite == OnNonFinite::kStop) {
      step.model.stop(what);
    } else if (std::find(reported_.begin(), reported_.end(), name) == reported_.end()) {
      reported_.push_back(name);
      log::warn("[train.GradientMonitor] {}", what);
    }
  }
  norm_ = std::sqrt(squares);
  if (options_.log_freq > 0 && ++seen_ % options_.log_freq == 0 && step.model.is_first_worker()) {
    fmt::print("step {}: norm of all gradients {:.4g}\n", step.step + 1, norm_);
    for (const auto& [name, norm] : norms) {
      fmt::print("  {:40} {:.4g}\n", name, norm);
    }
    std::fflush(stdout);
  }
}

}  // namespace argosy::train
