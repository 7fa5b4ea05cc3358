#include "argosy/optim/lr_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/optim/optim.h"

namespace argosy::optim {
namespace {

Optimizer make_optimizer(double lr = 0.4) {
  return SGD(engine::NamedTensors{{"a", torch::zeros({1}, torch::requires_grad())},
                                  {"b", torch::zeros({1}, torch::requires_grad())}},
             {.lr = lr},
             {{.names = {"b"}, .lr_scale = 10}});
}

// The rates of both groups, the second of which must be ten times the first.
template <typename Make>
void expect_sequence(const Make& make, const std::vector<double>& expected) {
  Optimizer optimizer = make_optimizer();
  auto scheduler = make(optimizer);
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_NEAR(optimizer.lr(), expected[step], 1e-15) << "step " << step;
    EXPECT_EQ(scheduler.last_lr(), optimizer.lr());
    EXPECT_EQ(scheduler.last_step(), static_cast<int64_t>(step));
    scheduler.step();
  }
}

// The sequences are PyTorch's and Paddle's own: lr_scheduler_golden.py prints them.
TEST(LRScheduler, ConstantIsPyTorchs) {
  expect_sequence([](Optimizer o) { return ConstantLR(o, {.factor = 0.25, .total_iters = 3}); },
                  {0.10000000000000001,
                   0.10000000000000001,
                   0.10000000000000001,
                   0.40000000000000002,
                   0.40000000000000002});
}

TEST(LRScheduler, StepIsPyTorchs) {
  expect_sequence([](Optimizer o) { return StepLR(o, {.step_size = 2, .gamma = 0.5}); },
                  {0.40000000000000002,
                   0.40000000000000002,
                   0.20000000000000001,
                   0.20000000000000001,
                   0.10000000000000001,
                   0.10000000000000001,
                   0.050000000000000003});
}

TEST(LRScheduler, CosineIsPyTorchs) {
  expect_sequence([](Optimizer o) { return CosineAnnealingLR(o, {.t_max = 5, .eta_min = 0.1}); },
                  {0.40000000000000002,
                   0.37135254915624216,
                   0.29635254915624215,
                   0.2036474508437579,
                   0.12864745084375789,
                   0.10000000000000001,
                   0.12864745084375789,
                   0.20364745084375796,
                   0.29635254915624226});
}

TEST(LRScheduler, WarmupThenCosineIsPaddles) {
  expect_sequence(
      [](Optimizer o) {
        return LinearWarmup(CosineAnnealingLR(o, {.t_max = 4}),
                            {.warmup_steps = 4, .start_factor = 0.25});
      },
      {0.10000000000000001,
       0.17500000000000002,
       0.25,
       0.32500000000000007,
       0.40000000000000002,
       0.34142135623730951,
       0.20000000000000001,
       0.058578643762690508,
       0});
}

TEST(LRScheduler, WarmupAloneStaysAtTheBase) {
  expect_sequence([](Optimizer o) { return LinearWarmup(o, {.warmup_steps = 2}); },
                  {0, 0.2, 0.4, 0.4, 0.4});
}

TEST(LRScheduler, AnyClosedFormWillDo) {
  expect_sequence(
      [](Optimizer o) {
        return LRScheduler(o, [](int64_t t, double base) { return base / (1.0 + double(t)); });
      },
      {0.4, 0.2, 0.4 / 3});
}

TEST(LRScheduler, GroupsKeepTheirProportion) {
  Optimizer optimizer = make_optimizer();
  CosineAnnealingLR scheduler(optimizer, {.t_max = 5});
  scheduler.step();
  EXPECT_NEAR(optimizer.param_groups()[1].lr, 10 * optimizer.param_groups()[0].lr, 1e-15);
  EXPECT_EQ(scheduler.last_lrs().size(), 2U);
}

TEST(LRScheduler, ResumesWhereItStood) {
  Optimizer first = make_optimizer(), second = make_optimizer(7.0);
  StepLR before(first, {.step_size = 2, .gamma = 0.5});
  for (int i = 0; i < 3; ++i) {
    before.step();
  }
  StepLR after(second, {.step_size = 2, .gamma = 0.5});
  after.load_state_dict(before.state_dict());
  EXPECT_EQ(second.lr(), first.lr());
  before.step();
  after.step();
  EXPECT_EQ(second.lr(), first.lr());
  EXPECT_EQ(second.param_groups()[1].lr, first.param_groups()[1].lr);
  EXPECT_THROW(after.load_state_dict({.step = 1, .base_lrs = {0.1}}), CheckpointError);
}

TEST(LRScheduler, RefusesSenselessOptions) {
  Optimizer optimizer = make_optimizer();
  EXPECT_THROW(CosineAnnealingLR(optimizer, {}), UsageError);
  EXPECT_THROW(StepLR(optimizer, {.step_size = 0}), UsageError);
  EXPECT_THROW(ConstantLR(optimizer, {.factor = 2}), UsageError);
  EXPECT_THROW(LinearWarmup(optimizer, {}), UsageError);
  EXPECT_THROW(LRScheduler(optimizer, nullptr), UsageError);
  EXPECT_EQ(optimizer.lr(), 0.4) << "a refused scheduler must not touch the rates";
}

}  // namespace
}  // namespace argosy::optim
