#include "argosy/optim/schedule_unit.h"

#include <limits>
#include <type_traits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/optim/optim.h"

namespace argosy::optim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Optimizer unit_optimizer(double lr = 1.0) {
  return SGD(engine::NamedTensors{{"a", torch::zeros({1}, torch::requires_grad())},
                                  {"b", torch::zeros({1}, torch::requires_grad())}},
             {.lr = lr},
             {{.names = {"b"}, .lr_scale = 10}});
}

// An epoch schedule stepped per batch does not compile.
template <typename T>
concept StepsPerBatch = requires(T& scheduler) {
  scheduler.on_step();
};
template <typename T>
concept StepsPerEpoch = requires(T& scheduler) {
  scheduler.on_epoch_end();
};
template <typename T>
concept HasBareStep = requires(T& scheduler) {
  scheduler.step();
};
static_assert(StepsPerBatch<StepScheduler> && !StepsPerEpoch<StepScheduler>);
static_assert(StepsPerEpoch<EpochScheduler> && !StepsPerBatch<EpochScheduler>);
static_assert(!HasBareStep<StepScheduler> && !HasBareStep<EpochScheduler>);
static_assert(!std::is_convertible_v<EpochScheduler, StepScheduler>);
static_assert(!std::is_convertible_v<StepScheduler, EpochScheduler>);
static_assert(!std::is_convertible_v<StepLR, StepScheduler>);
static_assert(std::is_convertible_v<EpochScheduler, ScheduleHandle>);
static_assert(std::is_convertible_v<ReduceLROnPlateau, ScheduleHandle>);
static_assert(!std::is_convertible_v<StepLR, ScheduleHandle>);
static_assert(!std::is_constructible_v<ScheduleHandle, LRScheduler>);

TEST(ScheduleUnit, AHandleMovesAtItsOwnUnitOnly) {
  Optimizer optimizer = unit_optimizer();
  const auto report_all = [](ScheduleHandle& handle) {
    handle.on_step();
    handle.on_step();
    handle.on_epoch_end();
    handle.on_metric(1.0);
  };
  ScheduleHandle step = per_step(ExponentialLR(optimizer, {.gamma = 0.5}));
  report_all(step);
  EXPECT_EQ(step.unit(), ScheduleUnit::kStep);
  EXPECT_EQ(step.last_lr(), 0.25);
  EXPECT_EQ(optimizer.param_groups()[1].lr, 2.5);
  optimizer.set_lr(1);
  ScheduleHandle epoch = per_epoch(ExponentialLR(optimizer, {.gamma = 0.5}));
  report_all(epoch);
  EXPECT_EQ(epoch.unit(), ScheduleUnit::kEpoch);
  EXPECT_EQ(epoch.last_lr(), 0.5);
  optimizer.set_lr(1);
  ScheduleHandle metric = ReduceLROnPlateau(optimizer, {.factor = 0.5, .patience = 0});
  report_all(metric);
  EXPECT_EQ(metric.unit(), ScheduleUnit::kMetric);
  EXPECT_EQ(optimizer.lr(), 1) << "the first metric is the best so far";
  report_all(metric);
  EXPECT_EQ(metric.last_lr(), 0.5);
}

TEST(ScheduleUnit, StatesSayTheirUnitAndNoOtherLoadsThem) {
  Optimizer optimizer = unit_optimizer();
  ScheduleHandle step = per_step(ExponentialLR(optimizer, {.gamma = 0.5}));
  ScheduleHandle epoch = per_epoch(ExponentialLR(optimizer, {.gamma = 0.5}));
  step.on_step();
  try {
    epoch.load_state_dict(step.state_dict());
    FAIL();
  } catch (const CheckpointError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("ExponentialLR: expected a state counted per epoch, got one per step"));
  }
  LRSchedulerState bare = step.state_dict();
  bare.unit = ScheduleUnit::kUnset;
  epoch.load_state_dict(bare);
  EXPECT_EQ(epoch.state_dict().step, 1);
}

// Any schedule is stored and taken back as the same struct.
TEST(ScheduleUnit, EveryScheduleResumes) {
  const auto expect_resume = [](const std::function<ScheduleHandle(const Optimizer&)>& make) {
    Optimizer straight = unit_optimizer(), resumed = unit_optimizer(7.0);
    ScheduleHandle first = make(straight);
    const auto go = [](ScheduleHandle& handle, int step) {
      handle.on_step();
      handle.on_epoch_end();
      handle.on_metric(step % 4);
    };
    for (int step = 0; step < 7; ++step) {
      go(first, step);
    }
    ScheduleHandle second = make(resumed);
    second.load_state_dict(first.state_dict());
    for (int step = 7; step < 20; ++step) {
      EXPECT_EQ(resumed.lr(), straight.lr()) << first.state_dict().scheduler << " " << step;
      EXPECT_EQ(resumed.param_groups()[1].lr, straight.param_groups()[1].lr);
      go(first, step);
      go(second, step);
    }
    EXPECT_NE(straight.lr(), 1.0);
  };
  expect_resume([](const Optimizer& o) { return per_step(CosineAnnealingLR(o, {.t_max = 30})); });
  expect_resume([](const Optimizer& o) {
    return per_epoch(MultiplicativeLR(o, [](int64_t t) { return 1 - 0.1 / double(t); }));
  });
  expect_resume([](const Optimizer& o) {
    return per_step(SequentialLR({LinearLR(o), ExponentialLR(o, {.gamma = 0.9})}, {9}));
  });
  expect_resume(
      [](const Optimizer& o) { return per_step(OneCycleLR(o, {.max_lr = 2, .total_steps = 30})); });
  expect_resume([](const Optimizer& o) {
    return ReduceLROnPlateau(o, {.factor = 0.5, .patience = 1, .cooldown = 2});
  });
}

TEST(ReduceLROnPlateau, ItsStateIsFiniteNumbers) {
  Optimizer optimizer = unit_optimizer();
  ReduceLROnPlateau scheduler(optimizer);
  EXPECT_FALSE(scheduler.state_dict().best.has_value()) << "no infinity before the first metric";
  scheduler.step(std::numeric_limits<double>::quiet_NaN());
  scheduler.step(-std::numeric_limits<double>::infinity());
  EXPECT_FALSE(scheduler.state_dict().best.has_value());
  EXPECT_EQ(scheduler.state_dict().num_bad_epochs, 2);
  scheduler.step(3);
  const LRSchedulerState state = scheduler.state_dict();
  EXPECT_EQ(state.best, 3);
  EXPECT_EQ(state.step, 3);
  EXPECT_THAT(state.base_lrs, ElementsAre(1, 10));
  EXPECT_THAT(state.last_lrs, ElementsAre(1, 10));
}

TEST(ReduceLROnPlateau, LowersEachGroupFromWhereItStands) {
  Optimizer optimizer = unit_optimizer();
  ReduceLROnPlateau scheduler(optimizer, {.factor = 0.5, .patience = 0, .min_lr = 0.3});
  optimizer.set_group_lr(1, 4);
  scheduler.step(1);
  scheduler.step(1);
  EXPECT_EQ(optimizer.lr(), 0.5);
  EXPECT_EQ(optimizer.param_groups()[1].lr, 2);
  scheduler.step(1);
  EXPECT_EQ(optimizer.lr(), 0.3);
}

TEST(ReduceLROnPlateau, RefusesSenselessOptionsAndStates) {
  Optimizer optimizer = unit_optimizer();
  EXPECT_THROW(ReduceLROnPlateau(optimizer, {.factor = 1}), UsageError);
  EXPECT_THROW(ReduceLROnPlateau(optimizer, {.patience = -1}), UsageError);
  EXPECT_THROW(ReduceLROnPlateau(optimizer, {.min_lr = -1}), UsageError);
  ReduceLROnPlateau scheduler(optimizer);
  LRSchedulerState state = scheduler.state_dict();
  state.last_lrs.clear();
  EXPECT_THROW(scheduler.load_state_dict(state), CheckpointError);
  state = scheduler.state_dict();
  state.cooldown_counter = -1;
  EXPECT_THROW(scheduler.load_state_dict(state), CheckpointError);
  state = scheduler.state_dict();
  state.last_lrs = {1};
  EXPECT_THROW(scheduler.load_state_dict(state), CheckpointError);
  EXPECT_THROW(scheduler.load_state_dict(StepLR(optimizer, {}).state_dict()), CheckpointError);
}

}  // namespace
}  // namespace argosy::optim
