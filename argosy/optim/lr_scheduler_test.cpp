#include "argosy/optim/lr_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/optim/optim.h"

#include "tests/support/error_text.h"

namespace argosy::optim {
namespace {

using ::testing::HasSubstr;

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

TEST(LRScheduler, RefusesAStateOfAnotherSchedule) {
  Optimizer optimizer = make_optimizer();
  StepLR steps(optimizer, {.step_size = 2});
  ExponentialLR other(optimizer, {.gamma = 0.5});
  EXPECT_THAT(test::error_text<CheckpointError>([&] { other.load_state_dict(steps.state_dict()); }),
              HasSubstr("[optim.LRScheduler] expected the state of ExponentialLR, got that of "
                        "StepLR"));
  LRSchedulerState wanted = steps.state_dict();
  wanted.step = 3;
  wanted.scheduler.clear();
  other.load_state_dict(wanted);
  EXPECT_EQ(optimizer.lr(), 0.4 / 8) << "without a name any schedule goes on from the step";
  EXPECT_EQ(other.state_dict().scheduler, "ExponentialLR");
  wanted.base_lrs[0] = -1;
  EXPECT_THROW(other.load_state_dict(wanted), CheckpointError);
}

TEST(LRScheduler, RatesOfItsOwnKeepTheGroupsProportion) {
  Optimizer optimizer = make_optimizer(7.0);
  PiecewiseDecay scheduler(optimizer, {.boundaries = {1}, .values = {0.5, 0.25}});
  EXPECT_EQ(optimizer.lr(), 0.5);
  EXPECT_EQ(optimizer.param_groups()[1].lr, 5);
  scheduler.step();
  EXPECT_EQ(optimizer.lr(), 0.25);
  optimizer.add_param_group(
      engine::NamedTensors{{"late", torch::zeros({1}, torch::requires_grad())}}, {.lr_scale = 2});
  scheduler.step();
  EXPECT_EQ(optimizer.param_groups()[2].lr, 0.5) << "a group that came later";
  OneCycleLR cycle(optimizer, {.max_lr = 1, .total_steps = 10, .div_factor = 4});
  EXPECT_DOUBLE_EQ(optimizer.lr(), 0.25);
  EXPECT_DOUBLE_EQ(optimizer.param_groups()[1].lr, 2.5);
}

TEST(LRScheduler, WarmupRisesToTheRateThatFollows) {
  Optimizer optimizer = make_optimizer(7.0);
  LinearWarmup scheduler(PiecewiseDecay(optimizer, {.boundaries = {5}, .values = {0.5, 0.25}}),
                         {.warmup_steps = 2});
  for (const double expected : {0.0, 0.25, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25}) {
    EXPECT_EQ(optimizer.lr(), expected);
    scheduler.step();
  }
}

TEST(LRScheduler, AStepPastTheEndChangesNothing) {
  Optimizer optimizer = make_optimizer();
  OneCycleLR scheduler(optimizer,
                       {.max_lr = 1, .total_steps = 3, .anneal_strategy = AnnealStrategy::kLinear});
  for (int i = 0; i < 3; ++i) {
    scheduler.step();
  }
  EXPECT_NEAR(optimizer.lr(), 1 / 25.0 / 1e4, 1e-15) << "the step after the last update";
  EXPECT_THAT(test::error_text<UsageError>([&] { scheduler.step(); }),
              HasSubstr("[optim.OneCycleLR] step 4 is past the end: total_steps is 3"));
  EXPECT_EQ(scheduler.last_step(), 3);
}

TEST(LRScheduler, ARateThatIsNoneIsRefused) {
  Optimizer optimizer = make_optimizer();
  EXPECT_THAT(
      test::error_text<UsageError>([&] { LambdaLR(optimizer, [](int64_t) { return -1.0; }); }),
      HasSubstr("LambdaLR: the rate of step 0 must be a number >= 0, got -0.4"));
  EXPECT_EQ(optimizer.lr(), 0.4);
}

TEST(LRScheduler, MultiplicativeGoesBackToo) {
  Optimizer optimizer = make_optimizer(1.0);
  MultiplicativeLR scheduler(optimizer, [](int64_t t) { return t == 1 ? 0.5 : 0.25; });
  const LRSchedulerState start = scheduler.state_dict();
  scheduler.step();
  scheduler.step();
  EXPECT_EQ(optimizer.lr(), 0.125);
  scheduler.load_state_dict(start);
  EXPECT_EQ(optimizer.lr(), 1);
  scheduler.step();
  EXPECT_EQ(optimizer.lr(), 0.5);
}

TEST(LRScheduler, PartsMustFitTogether) {
  Optimizer optimizer = make_optimizer(), other = make_optimizer();
  const StepLR part(optimizer, {}), alien(other, {});
  const CosineAnnealingLR bounded(optimizer, {.t_max = 5, .eta_min = 0.1});
  const CyclicLR own(optimizer, {.max_lr = 1});
  EXPECT_THROW(SequentialLR({}, {}), UsageError);
  EXPECT_THROW(SequentialLR({part, part}, {}), UsageError);
  EXPECT_THROW(SequentialLR({part, part, part}, {5, 4}), UsageError);
  EXPECT_THAT(test::error_text<UsageError>([&] {
                SequentialLR({part, alien}, {5});
              }),
              HasSubstr("schedulers[1] is of another optimizer"));
  EXPECT_THAT(test::error_text<UsageError>([&] {
                SequentialLR({part, own}, {5});
              }),
              HasSubstr("schedulers[1], CyclicLR: expected a schedule of the optimizer's rate"));
  EXPECT_THAT(test::error_text<UsageError>([&] {
                ChainedScheduler({part, bounded});
              }),
              HasSubstr("schedulers[1], CosineAnnealingLR: expected a rate that is a factor"));
}

TEST(LRScheduler, RefusesSenselessOptions) {
  Optimizer optimizer = make_optimizer();
  EXPECT_THROW(LinearLR(optimizer, {.start_factor = 0}), UsageError);
  EXPECT_THROW(LinearLR(optimizer, {.end_factor = 2}), UsageError);
  EXPECT_THROW(LinearLR(optimizer, {.total_iters = 0}), UsageError);
  EXPECT_THROW(MultiStepLR(optimizer, {.milestones = {5, 3}}), UsageError);
  EXPECT_THROW(ExponentialLR(optimizer, {}), UsageError);
  EXPECT_THROW(PolynomialLR(optimizer, {.total_iters = 0}), UsageError);
  EXPECT_THROW(LambdaLR(optimizer, nullptr), UsageError);
  EXPECT_THROW(MultiplicativeLR(optimizer, nullptr), UsageError);
  EXPECT_THROW(NoamDecay(optimizer, {.d_model = 64}), UsageError);
  EXPECT_THROW(PiecewiseDecay(optimizer, {}), UsageError);
  EXPECT_THROW(PiecewiseDecay(optimizer, {.boundaries = {1}, .values = {1}}), UsageError);
  EXPECT_THROW(NaturalExpDecay(optimizer, {}), UsageError);
  EXPECT_THROW(InverseTimeDecay(optimizer, {}), UsageError);
  EXPECT_THROW(CosineAnnealingWarmRestarts(optimizer, {}), UsageError);
  EXPECT_THROW(OneCycleLR(optimizer, {.max_lr = 1}), UsageError);
  EXPECT_THROW(OneCycleLR(optimizer, {.max_lr = 1, .total_steps = 5, .pct_start = 2}), UsageError);
  EXPECT_THROW(CyclicLR(optimizer, {.base_lr = 2, .max_lr = 1}), UsageError);
  EXPECT_THROW(CyclicLR(optimizer, {.max_lr = 1, .step_size_up = 0}), UsageError);
  EXPECT_THROW(CosineAnnealingLR(optimizer, {}), UsageError);
  EXPECT_THROW(StepLR(optimizer, {.step_size = 0}), UsageError);
  EXPECT_THROW(ConstantLR(optimizer, {.factor = 2}), UsageError);
  EXPECT_THROW(LinearWarmup(optimizer, {}), UsageError);
  EXPECT_THROW(LRScheduler(optimizer, nullptr), UsageError);
  EXPECT_EQ(optimizer.lr(), 0.4) << "a refused scheduler must not touch the rates";
}

}  // namespace
}  // namespace argosy::optim
