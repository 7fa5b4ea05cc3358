// Every schedule against PyTorch's and Paddle's own over 1,000 steps: lr_scheduler_golden.py writes
// the numbers.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/optim/optim.h"

namespace argosy::optim {
namespace {

constexpr int kSteps = 1000;

struct Golden {
  std::vector<double> head{};  ///< the first rates
  std::vector<double> sums{};  ///< of each ten steps: sum of (i + 1) * rate
};

std::vector<double> numbers(const std::string& text) {
  std::istringstream words(text);
  std::vector<double> result;
  for (std::string word; words >> word;) {
    result.push_back(std::strtod(word.c_str(), nullptr));
  }
  return result;
}

std::map<std::string, Golden> read_golden() {
  std::ifstream file(ARGOSY_OPTIM_GOLDEN "/lr_schedules.txt");
  std::map<std::string, Golden> result;
  for (std::string line; std::getline(file, line);) {
    std::istringstream parts(line);
    std::string name, head, sums;
    if (line[0] != '#' && std::getline(parts, name, '|') && std::getline(parts, head, '|') &&
        std::getline(parts, sums)) {
      result[name.substr(0, name.find(' '))] = {numbers(head), numbers(sums)};
    }
  }
  return result;
}

Optimizer golden_optimizer(double lr = 0.4) {
  return SGD(engine::NamedTensors{{"a", torch::zeros({1}, torch::requires_grad())}}, {.lr = lr});
}

// As in the generator.
double curve(int64_t step) {
  return static_cast<double>((step * 7919) % 101) / 101.0 +
         static_cast<double>(std::max<int64_t>(0, 300 - step)) / 100.0 +
         static_cast<double>(std::abs(step - 600) % 350) / 175.0;
}

using Go = std::function<void(int64_t step)>;  // makes the step after `step`
using Make = std::function<Go(Optimizer)>;

template <typename Scheduler, typename... Args>
Make of(const Args&... args) {
  return [=](Optimizer optimizer) -> Go {
    auto scheduler = std::make_shared<Scheduler>(optimizer, args...);
    return [scheduler](int64_t) { scheduler->step(); };
  };
}

Make composed(const std::function<LRScheduler(const Optimizer&)>& make) {
  return [=](Optimizer optimizer) -> Go {
    auto scheduler = std::make_shared<LRScheduler>(make(optimizer));
    return [scheduler](int64_t) { scheduler->step(); };
  };
}

Make plateau(const ReduceLROnPlateauOptions& options) {
  return [=](Optimizer optimizer) -> Go {
    auto scheduler = std::make_shared<ReduceLROnPlateau>(optimizer, options);
    const double sign = options.mode == PlateauMode::kMin ? 1 : -1;
    return [scheduler, sign](int64_t step) { scheduler->step(sign * curve(step)); };
  };
}

std::map<std::string, Make> torch_schedules() {
  const ReduceLROnPlateauOptions reduce{.factor = 0.7, .patience = 5, .threshold = 1e-3};
  ReduceLROnPlateauOptions cooled = reduce, rising = reduce;
  cooled.cooldown = 17;
  cooled.min_lr = 1e-3;
  cooled.eps = 1e-5;
  rising.mode = PlateauMode::kMax;
  rising.threshold_mode = ThresholdMode::kAbs;
  const CyclicLROptions cyclic{.base_lr = 0.1, .max_lr = 0.5, .step_size_up = 70};
  CyclicLROptions uneven = cyclic, halved = cyclic, falling = cyclic, scaled = cyclic;
  uneven.step_size_up = 40;
  uneven.step_size_down = 60;
  halved.mode = CyclicMode::kTriangular2;
  falling.mode = CyclicMode::kExpRange;
  falling.gamma = 0.998;
  scaled.scale_fn = [](double cycle) { return 1 / cycle; };
  const auto shrinking = [](int64_t t) { return 1 - 1 / static_cast<double>(t + 200); };
  return {
      {"torch.ConstantLR", of<ConstantLR>(ConstantLROptions{.factor = 0.25, .total_iters = 30})},
      {"torch.StepLR", of<StepLR>(StepLROptions{.step_size = 70, .gamma = 0.5})},
      {"torch.MultiStepLR",
       of<MultiStepLR>(MultiStepLROptions{.milestones = {5, 300, 300, 800}, .gamma = 0.3})},
      {"torch.LinearLR",
       of<LinearLR>(
           LinearLROptions{.start_factor = 0.125, .end_factor = 0.75, .total_iters = 600})},
      {"torch.ExponentialLR", of<ExponentialLR>(ExponentialLROptions{.gamma = 0.995})},
      {"torch.PolynomialLR", of<PolynomialLR>(PolynomialLROptions{.total_iters = 800, .power = 2})},
      {"torch.LambdaLR", of<LambdaLR>([](int64_t t) {
         const int64_t thirties = 1 + t / 30;
         return 1 / static_cast<double>(thirties);
       })},
      {"torch.MultiplicativeLR", of<MultiplicativeLR>(shrinking)},
      {"torch.CosineAnnealingLR",
       of<CosineAnnealingLR>(CosineAnnealingLROptions{.t_max = 999, .eta_min = 0.01})},
      {"torch.CosineAnnealingWarmRestarts",
       of<CosineAnnealingWarmRestarts>(
           CosineAnnealingWarmRestartsOptions{.t_0 = 30, .t_mult = 2, .eta_min = 0.01})},
      {"torch.CosineAnnealingWarmRestarts.even",
       of<CosineAnnealingWarmRestarts>(CosineAnnealingWarmRestartsOptions{.t_0 = 30})},
      {"torch.OneCycleLR", of<OneCycleLR>(OneCycleLROptions{.max_lr = 0.5, .total_steps = 1000})},
      {"torch.OneCycleLR.linear",
       of<OneCycleLR>(OneCycleLROptions{.max_lr = 0.5,
                                        .total_steps = 1000,
                                        .pct_start = 0.1,
                                        .anneal_strategy = AnnealStrategy::kLinear})},
      {"torch.OneCycleLR.three_phase",
       of<OneCycleLR>(OneCycleLROptions{.max_lr = 0.5,
                                        .total_steps = 1001,
                                        .div_factor = 10,
                                        .final_div_factor = 100,
                                        .three_phase = true})},
      {"torch.CyclicLR", of<CyclicLR>(uneven)},
      {"torch.CyclicLR.triangular2", of<CyclicLR>(halved)},
      {"torch.CyclicLR.exp_range", of<CyclicLR>(falling)},
      {"torch.CyclicLR.scale_fn", of<CyclicLR>(scaled)},
      {"torch.SequentialLR", composed([](const Optimizer& o) {
         return SequentialLR({LinearLR(o, {.start_factor = 0.1, .total_iters = 50}),
                              CosineAnnealingLR(o, {.t_max = 500}),
                              ExponentialLR(o, {.gamma = 0.99})},
                             {50, 550});
       })},
      {"torch.ChainedScheduler", composed([](const Optimizer& o) {
         return ChainedScheduler({ConstantLR(o, {.factor = 0.1, .total_iters = 20}),
                                  ExponentialLR(o, {.gamma = 0.997}),
                                  StepLR(o, {.step_size = 300, .gamma = 0.5})});
       })},
      {"torch.ReduceLROnPlateau", plateau(reduce)},
      {"torch.ReduceLROnPlateau.cooldown", plateau(cooled)},
      {"torch.ReduceLROnPlateau.max_abs", plateau(rising)},
  };
}

std::map<std::string, Make> paddle_schedules() {
  const ReduceLROnPlateauOptions reduce{.factor = 0.7,
                                        .patience = 5,
                                        .threshold = 1e-3,
                                        .during_cooldown = DuringCooldown::kLooksAway};
  ReduceLROnPlateauOptions cooled = reduce;
  cooled.cooldown = 17;
  cooled.min_lr = 1e-3;
  cooled.eps = 1e-5;
  const auto shrinking = [](int64_t t) { return 1 - 1 / static_cast<double>(t + 200); };
  return {
      {"paddle.NoamDecay", of<NoamDecay>(NoamDecayOptions{.d_model = 64, .warmup_steps = 100})},
      {"paddle.PiecewiseDecay",
       of<PiecewiseDecay>(
           PiecewiseDecayOptions{.boundaries = {10, 400, 900}, .values = {0.4, 0.3, 0.05, 0.01}})},
      {"paddle.NaturalExpDecay", of<NaturalExpDecay>(RateDecayOptions{.gamma = 0.01})},
      {"paddle.InverseTimeDecay", of<InverseTimeDecay>(RateDecayOptions{.gamma = 0.1})},
      {"paddle.PolynomialDecay",
       of<PolynomialLR>(PolynomialLROptions{.total_iters = 300, .power = 1.5, .end_lr = 1e-4})},
      {"paddle.PolynomialDecay.cycle",
       of<PolynomialLR>(PolynomialLROptions{.total_iters = 90, .end_lr = 0.01, .cycle = true})},
      {"paddle.LinearWarmup", composed([](const Optimizer& o) {
         return LinearWarmup(CosineAnnealingLR(o, {.t_max = 700}),
                             {.warmup_steps = 50, .start_factor = 0.25});
       })},
      {"paddle.LinearWarmup.piecewise", composed([](const Optimizer& o) {
         return LinearWarmup(
             PiecewiseDecay(o, {.boundaries = {100, 500}, .values = {0.4, 0.04, 0.004}}),
             {.warmup_steps = 25});
       })},
      {"paddle.ExponentialDecay", of<ExponentialLR>(ExponentialLROptions{.gamma = 0.995})},
      {"paddle.MultiStepDecay",
       of<MultiStepLR>(MultiStepLROptions{.milestones = {7, 200, 700}, .gamma = 0.25})},
      {"paddle.StepDecay", of<StepLR>(StepLROptions{.step_size = 90, .gamma = 0.6})},
      {"paddle.LambdaDecay",
       of<LambdaLR>([](int64_t t) { return std::pow(0.99, static_cast<double>(t)); })},
      {"paddle.MultiplicativeDecay", of<MultiplicativeLR>(shrinking)},
      {"paddle.CosineAnnealingDecay",
       of<CosineAnnealingLR>(CosineAnnealingLROptions{.t_max = 300, .eta_min = 0.02})},
      {"paddle.CosineAnnealingWarmRestarts",
       of<CosineAnnealingWarmRestarts>(CosineAnnealingWarmRestartsOptions{.t_0 = 17, .t_mult = 3})},
      {"paddle.OneCycleLR",
       of<OneCycleLR>(OneCycleLROptions{.max_lr = 0.5,
                                        .total_steps = 1000,
                                        .pct_start = 0.25,
                                        .div_factor = 20,
                                        .end_lr = 0.001})},
      {"paddle.OneCycleLR.three_phase",
       of<OneCycleLR>(OneCycleLROptions{.max_lr = 0.5,
                                        .total_steps = 1000,
                                        .pct_start = 0.4,
                                        .anneal_strategy = AnnealStrategy::kLinear,
                                        .end_lr = 1e-4,
                                        .three_phase = true})},
      {"paddle.CyclicLR",
       of<CyclicLR>(CyclicLROptions{.base_lr = 0.1,
                                    .max_lr = 0.5,
                                    .step_size_up = 35,
                                    .step_size_down = 90,
                                    .mode = CyclicMode::kExpRange,
                                    .gamma = 0.999})},
      {"paddle.LinearLR",
       of<LinearLR>(LinearLROptions{.start_factor = 0.2, .end_factor = 0.9, .total_iters = 444})},
      {"paddle.ReduceOnPlateau", plateau(reduce)},
      {"paddle.ReduceOnPlateau.cooldown", plateau(cooled)},
  };
}

// The bound is the rounding that the peers' own recursions gather in 1,000 steps.
constexpr double kBound = 1e-12;

void expect_golden(const std::map<std::string, Make>& schedules, const std::string& prefix) {
  std::size_t seen = 0;
  for (const auto& [name, golden] : read_golden()) {
    if (name.rfind(prefix, 0) != 0) {
      continue;
    }
    ++seen;
    ASSERT_TRUE(schedules.contains(name)) << name;
    ASSERT_EQ(golden.sums.size(), kSteps / 10U) << name;
    Optimizer optimizer = golden_optimizer();
    const Go go = schedules.at(name)(optimizer);
    double sum = 0;
    for (int step = 0; step < kSteps; ++step) {
      if (step < static_cast<int>(golden.head.size())) {
        EXPECT_NEAR(optimizer.lr(), golden.head[step], kBound) << name << " step " << step;
      }
      sum += (step % 10 + 1) * optimizer.lr();
      if (step % 10 == 9) {
        EXPECT_NEAR(sum, golden.sums[step / 10], 55 * kBound) << name << " to step " << step;
        sum = 0;
      }
      go(step);
    }
  }
  EXPECT_EQ(seen, schedules.size()) << "a schedule without golden numbers";
}

TEST(LRGolden, ThousandStepsArePyTorchs) {
  expect_golden(torch_schedules(), "torch.");
}

TEST(LRGolden, ThousandStepsArePaddles) {
  expect_golden(paddle_schedules(), "paddle.");
}

}  // namespace
}  // namespace argosy::optim
