#include "argosy/optim/lr_cycle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "argosy/base/check.h"

namespace argosy::optim {
namespace {

LRSchedule restarts(const CosineAnnealingWarmRestartsOptions& options) {
  constexpr const char* kWhere = "optim.CosineAnnealingWarmRestarts";
  ARGOSY_CHECK(options.t_0 > 0, kWhere, "t_0 must be > 0, got {}", options.t_0);
  ARGOSY_CHECK(options.t_mult >= 1, kWhere, "t_mult must be >= 1, got {}", options.t_mult);
  return [options](int64_t step, double base) {
    int64_t length = options.t_0;
    if (options.t_mult == 1) {
      step %= length;
    }
    while (step >= length) {
      step -= length;
      length = length > std::numeric_limits<int64_t>::max() / options.t_mult
                   ? std::numeric_limits<int64_t>::max()
                   : length * options.t_mult;
    }
    const double angle = std::numbers::pi * static_cast<double>(step) / static_cast<double>(length);
    return options.eta_min + (base - options.eta_min) * (1 + std::cos(angle)) / 2;
  };
}

double anneal(AnnealStrategy strategy, double from, double to, double part) {
  return strategy == AnnealStrategy::kCos
             ? to + (from - to) / 2.0 * (std::cos(std::numbers::pi * part) + 1)
             : (to - from) * part + from;
}

// A stretch of OneCycleLR; both rates in parts of max_lr.
struct Phase {
  double end_step;
  double from;
  double to;
};

std::vector<Phase> phases(const OneCycleLROptions& options) {
  const double low = 1 / options.div_factor;
  const double last =
      options.end_lr ? *options.end_lr / options.max_lr : low / options.final_div_factor;
  const auto total = static_cast<double>(options.total_steps);
  const double up = options.pct_start * total - 1;
  if (options.three_phase) {
    const double down = 2 * options.pct_start * total - 2;
    return {{up, low, 1}, {down, 1, low}, {total - 1, low, last}};
  }
  return {{up, low, 1}, {total - 1, 1, last}};
}

void check(const OneCycleLROptions& options) {
  constexpr const char* kWhere = "optim.OneCycleLR";
  const auto positive = [&](const char* name, double value) {
    ARGOSY_CHECK(
        std::isfinite(value) && value > 0, kWhere, "{} must be a number > 0, got {}", name, value);
  };
  positive("max_lr", options.max_lr);
  positive("total_steps", static_cast<double>(options.total_steps));
  positive("div_factor", options.div_factor);
  positive("final_div_factor", options.final_div_factor);
  const double most = options.three_phase ? 0.5 : 1.0;
  ARGOSY_CHECK(options.pct_start >= 0 && options.pct_start <= most,
               kWhere,
               "pct_start must be in [0, {}], got {}",
               most,
               options.pct_start);
  ARGOSY_CHECK(!options.end_lr || (std::isfinite(*options.end_lr) && *options.end_lr >= 0),
               kWhere,
               "end_lr must be a number >= 0, got {}",
               options.end_lr.value_or(0));
}

// The base rate is max_lr times the group's lr_scale.
LRSchedule one_cycle(const OneCycleLROptions& options) {
  check(options);
  return [options, phases = phases(options)](int64_t step, double base) {
    ARGOSY_CHECK(step <= options.total_steps,
                 "optim.OneCycleLR",
                 "step {} is past the end: total_steps is {}. Give as many as the training makes.",
                 step,
                 options.total_steps);
    const auto t = static_cast<double>(step);
    double start = 0;
    std::size_t i = 0;
    for (; i + 1 < phases.size() && t > phases[i].end_step; ++i) {
      start = phases[i].end_step;
    }
    const Phase& phase = phases[i];
    const double length = phase.end_step - start;
    const double part = length > 0 ? std::min(1.0, (t - start) / length) : 1.0;
    return anneal(options.anneal_strategy, base * phase.from, base * phase.to, part);
  };
}

void check(const CyclicLROptions& options) {
  constexpr const char* kWhere = "optim.CyclicLR";
  ARGOSY_CHECK(std::isfinite(options.max_lr) && options.max_lr > 0,
               kWhere,
               "max_lr must be a number > 0, got {}",
               options.max_lr);
  ARGOSY_CHECK(options.base_lr >= 0 && options.base_lr <= options.max_lr,
               kWhere,
               "base_lr must be in [0, max_lr], got {}",
               options.base_lr);
  ARGOSY_CHECK(options.step_size_up > 0 && options.step_size_down.value_or(1) > 0,
               kWhere,
               "step_size_up and step_size_down must be > 0, got {} and {}",
               options.step_size_up,
               options.step_size_down.value_or(options.step_size_up));
}

double height(const CyclicLROptions& options, double cycle, double step) {
  if (options.scale_fn) {
    return options.scale_fn(options.scale_mode == ScaleMode::kCycle ? cycle : step);
  }
  switch (options.mode) {
    case CyclicMode::kTriangular2:
      return std::exp2(1 - cycle);
    case CyclicMode::kExpRange:
      return std::pow(options.gamma, step);
    case CyclicMode::kTriangular:
      break;
  }
  return 1;
}

// The base rate is max_lr times the group's lr_scale.
LRSchedule cyclic(const CyclicLROptions& options) {
  check(options);
  return [options](int64_t step, double base) {
    const int64_t up = options.step_size_up, down = options.step_size_down.value_or(up);
    const int64_t place = step % (up + down);
    const double part = place <= up
                            ? static_cast<double>(place) / static_cast<double>(up)
                            : static_cast<double>(up + down - place) / static_cast<double>(down);
    const double low = base * (options.base_lr / options.max_lr);
    const int64_t cycle = 1 + step / (up + down);
    return low + (base - low) * part *
                     height(options, static_cast<double>(cycle), static_cast<double>(step));
  };
}

}  // namespace

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(
    Optimizer optimizer, const CosineAnnealingWarmRestartsOptions& options)
    : LRScheduler("CosineAnnealingWarmRestarts", std::move(optimizer), restarts(options)) {
  set_parameters(
      fmt::format("t_0={}, t_mult={}, eta_min={}", options.t_0, options.t_mult, options.eta_min));
}

OneCycleLR::OneCycleLR(Optimizer optimizer, const OneCycleLROptions& options)
    : LRScheduler("OneCycleLR", std::move(optimizer), one_cycle(options), options.max_lr) {
  set_parameters(
      fmt::format("max_lr={}, total_steps={}, pct_start={}, div_factor={}, final_div_factor={}",
                  options.max_lr,
                  options.total_steps,
                  options.pct_start,
                  options.div_factor,
                  options.final_div_factor));
}

CyclicLR::CyclicLR(Optimizer optimizer, const CyclicLROptions& options)
    : LRScheduler("CyclicLR", std::move(optimizer), cyclic(options), options.max_lr) {
  set_parameters(fmt::format("base_lr={}, max_lr={}, step_size_up={}, gamma={}",
                             options.base_lr,
                             options.max_lr,
                             options.step_size_up,
                             options.gamma));
}

}  // namespace argosy::optim
