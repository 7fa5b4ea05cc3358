#include "argosy/optim/lr_decay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "argosy/base/check.h"

namespace argosy::optim {
namespace {

void check_positive(const char* where, const char* name, double value) {
  ARGOSY_CHECK(
      std::isfinite(value) && value > 0, where, "{} must be a number > 0, got {}", name, value);
}

void check_rising(const char* where, const char* name, const std::vector<int64_t>& steps) {
  ARGOSY_CHECK(std::ranges::is_sorted(steps) && (steps.empty() || steps.front() >= 0),
               where,
               "{} must be steps >= 0 in rising order",
               name);
}

// How many of these steps have been reached.
std::size_t reached(const std::vector<int64_t>& steps, int64_t step) {
  return static_cast<std::size_t>(std::ranges::upper_bound(steps, step) - steps.begin());
}

LRSchedule linear(const LinearLROptions& options) {
  constexpr const char* kWhere = "optim.LinearLR";
  ARGOSY_CHECK(options.start_factor > 0 && options.start_factor <= 1,
               kWhere,
               "start_factor must be in (0, 1], got {}",
               options.start_factor);
  ARGOSY_CHECK(options.end_factor >= 0 && options.end_factor <= 1,
               kWhere,
               "end_factor must be in [0, 1], got {}",
               options.end_factor);
  ARGOSY_CHECK(
      options.total_iters > 0, kWhere, "total_iters must be > 0, got {}", options.total_iters);
  return [options](int64_t step, double base) {
    const double part = static_cast<double>(std::min(step, options.total_iters)) /
                        static_cast<double>(options.total_iters);
    return base * (options.start_factor + (options.end_factor - options.start_factor) * part);
  };
}

LRSchedule multi_step(const MultiStepLROptions& options) {
  check_rising("optim.MultiStepLR", "milestones", options.milestones);
  check_positive("optim.MultiStepLR", "gamma", options.gamma);
  return [options](int64_t step, double base) {
    return base * std::pow(options.gamma, static_cast<double>(reached(options.milestones, step)));
  };
}

LRSchedule exponential(const ExponentialLROptions& options) {
  check_positive("optim.ExponentialLR", "gamma", options.gamma);
  return [gamma = options.gamma](int64_t step, double base) {
    return base * std::pow(gamma, static_cast<double>(step));
  };
}

LRSchedule polynomial(const PolynomialLROptions& options) {
  constexpr const char* kWhere = "optim.PolynomialLR";
  ARGOSY_CHECK(
      options.total_iters > 0, kWhere, "total_iters must be > 0, got {}", options.total_iters);
  check_positive(kWhere, "power", options.power);
  ARGOSY_CHECK(options.end_lr >= 0, kWhere, "end_lr must be >= 0, got {}", options.end_lr);
  return [options](int64_t step, double base) {
    int64_t length = options.total_iters;
    if (options.cycle) {
      length *= std::max<int64_t>(1, (step + options.total_iters - 1) / options.total_iters);
    }
    const double part = static_cast<double>(std::min(step, length)) / static_cast<double>(length);
    return (base - options.end_lr) * std::pow(1 - part, options.power) + options.end_lr;
  };
}

LRSchedule lambda(std::function<double(int64_t)> factor) {
  ARGOSY_CHECK(factor != nullptr, "optim.LambdaLR", "the function is empty");
  return [factor = std::move(factor)](int64_t step, double base) { return base * factor(step); };
}

// The product up to the last step asked for is kept: a step costs one call for all groups.
class Product {
 public:
  explicit Product(std::function<double(int64_t)> factor) : factor_(std::move(factor)) {}
  double operator()(int64_t step, double base) {
    if (step < reached_) {
      reached_ = 0;
      product_ = 1;
    }
    while (reached_ < step) {
      product_ *= factor_(++reached_);
    }
    return base * product_;
  }

 private:
  std::function<double(int64_t)> factor_;
  int64_t reached_ = 0;
  double product_ = 1;
};

LRSchedule product(std::function<double(int64_t)> factor) {
  ARGOSY_CHECK(factor != nullptr, "optim.MultiplicativeLR", "the function is empty");
  return Product(std::move(factor));
}

LRSchedule noam(const NoamDecayOptions& options) {
  check_positive("optim.NoamDecay", "d_model", static_cast<double>(options.d_model));
  check_positive("optim.NoamDecay", "warmup_steps", static_cast<double>(options.warmup_steps));
  return [options](int64_t step, double base) {
    const auto t = static_cast<double>(step);
    const double falling = step == 0 ? 1.0 : std::pow(t, -0.5);
    const double rising = std::pow(static_cast<double>(options.warmup_steps), -1.5) * t;
    return base * std::pow(static_cast<double>(options.d_model), -0.5) * std::min(falling, rising);
  };
}

void check(const PiecewiseDecayOptions& options) {
  constexpr const char* kWhere = "optim.PiecewiseDecay";
  check_rising(kWhere, "boundaries", options.boundaries);
  ARGOSY_CHECK(options.values.size() == options.boundaries.size() + 1,
               kWhere,
               "expected one value more than the {} boundaries, got {}",
               options.boundaries.size(),
               options.values.size());
  check_positive(kWhere, "values[0]", options.values.front());
  for (const double value : options.values) {
    ARGOSY_CHECK(std::isfinite(value) && value >= 0, kWhere, "a value must be >= 0, got {}", value);
  }
}

// The base rate is the first value times the group's lr_scale.
LRSchedule piecewise(const PiecewiseDecayOptions& options) {
  check(options);
  return [options](int64_t step, double base) {
    return base * (options.values[reached(options.boundaries, step)] / options.values.front());
  };
}

LRSchedule natural_exp(const RateDecayOptions& options) {
  check_positive("optim.NaturalExpDecay", "gamma", options.gamma);
  return [gamma = options.gamma](int64_t step, double base) {
    return base * std::exp(-gamma * static_cast<double>(step));
  };
}

LRSchedule inverse_time(const RateDecayOptions& options) {
  check_positive("optim.InverseTimeDecay", "gamma", options.gamma);
  return [gamma = options.gamma](int64_t step, double base) {
    return base / (1 + gamma * static_cast<double>(step));
  };
}

}  // namespace

LinearLR::LinearLR(Optimizer optimizer, const LinearLROptions& options)
    : LRScheduler("LinearLR", std::move(optimizer), linear(options)) {
  set_parameters(fmt::format("start_factor={}, end_factor={}, total_iters={}",
                             options.start_factor,
                             options.end_factor,
                             options.total_iters));
}

MultiStepLR::MultiStepLR(Optimizer optimizer, const MultiStepLROptions& options)
    : LRScheduler("MultiStepLR", std::move(optimizer), multi_step(options)) {
  set_parameters(
      fmt::format("milestones=[{}], gamma={}", fmt::join(options.milestones, ", "), options.gamma));
}

ExponentialLR::ExponentialLR(Optimizer optimizer, const ExponentialLROptions& options)
    : LRScheduler("ExponentialLR", std::move(optimizer), exponential(options)) {
  set_parameters(fmt::format("gamma={}", options.gamma));
}

PolynomialLR::PolynomialLR(Optimizer optimizer, const PolynomialLROptions& options)
    : LRScheduler("PolynomialLR", std::move(optimizer), polynomial(options)) {
  set_parameters(fmt::format(
      "total_iters={}, power={}, end_lr={}", options.total_iters, options.power, options.end_lr));
}

LambdaLR::LambdaLR(Optimizer optimizer, std::function<double(int64_t)> factor)
    : LRScheduler("LambdaLR", std::move(optimizer), lambda(std::move(factor))) {}

MultiplicativeLR::MultiplicativeLR(Optimizer optimizer, std::function<double(int64_t)> factor)
    : LRScheduler("MultiplicativeLR", std::move(optimizer), product(std::move(factor))) {}

NoamDecay::NoamDecay(Optimizer optimizer, const NoamDecayOptions& options)
    : LRScheduler("NoamDecay", std::move(optimizer), noam(options)) {
  set_parameters(fmt::format("d_model={}, warmup_steps={}", options.d_model, options.warmup_steps));
}

PiecewiseDecay::PiecewiseDecay(Optimizer optimizer, const PiecewiseDecayOptions& options)
    : LRScheduler("PiecewiseDecay",
                  std::move(optimizer),
                  piecewise(options),
                  options.values.empty() ? 0 : options.values.front()) {
  set_parameters(fmt::format("boundaries=[{}], values=[{}]",
                             fmt::join(options.boundaries, ", "),
                             fmt::join(options.values, ", ")));
}

NaturalExpDecay::NaturalExpDecay(Optimizer optimizer, const RateDecayOptions& options)
    : LRScheduler("NaturalExpDecay", std::move(optimizer), natural_exp(options)) {
  set_parameters(fmt::format("gamma={}", options.gamma));
}

InverseTimeDecay::InverseTimeDecay(Optimizer optimizer, const RateDecayOptions& options)
    : LRScheduler("InverseTimeDecay", std::move(optimizer), inverse_time(options)) {
  set_parameters(fmt::format("gamma={}", options.gamma));
}

}  // namespace argosy::optim
