#include "argosy/recipes/schedules.h"

#include <cmath>

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/recipes/optimizers.h"

namespace argosy::recipes {
namespace {

optim::Optimizer sgd(double lr = 0.4) {
  const OptimizerEntry& entry = find_entry(kOptimizers, optimizers(), "sgd");
  return entry.build({.parameters = {{"w", at::zeros({2, 2})}}, .lr = lr},
                     Values(kOptimizers, entry.row, {}));
}

/// The rate of each update of 2 epochs × 4 updates.
std::vector<double> rates(const std::string& text, int64_t warmup = 0) {
  const optim::Optimizer optimizer = sgd();
  auto schedule =
      make_schedule(text, optimizer, {.epochs = 2, .updates_per_epoch = 4, .warmup = warmup});
  std::vector<double> all;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int update = 0; update < 4; ++update) {
      all.push_back(optimizer.lr());
      if (schedule.has_value()) {
        schedule->on_step();
      }
    }
    if (schedule.has_value()) {
      schedule->on_epoch_end();
    }
  }
  return all;
}

void expect_rates(const std::vector<double>& got, const std::vector<double>& expected) {
  EXPECT_THAT(got, ::testing::Pointwise(::testing::DoubleNear(1e-12), expected));
}

TEST(Schedules, GoOnByEpochOrByUpdate) {
  expect_rates(rates("constant"), {0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4});
  expect_rates(rates("step:step_size=1"), {0.4, 0.4, 0.4, 0.4, 0.04, 0.04, 0.04, 0.04});
  expect_rates(rates("linear"), {0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05});
  expect_rates(rates("linear:unit=epoch"), {0.4, 0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.2});
}

TEST(Schedules, CosineIsAsLongAsTheTraining) {
  const std::vector<double> got = rates("cosine");
  for (int step = 0; step < 8; ++step) {
    EXPECT_NEAR(got[step], 0.2 * (1 + std::cos(M_PI * step / 8)), 1e-12);
  }
}

TEST(Schedules, AWarmupGoesBefore) {
  expect_rates(rates("constant", 4), {0, 0.1, 0.2, 0.3, 0.4, 0.4, 0.4, 0.4});
  expect_rates(rates("linear", 4), {0, 0.1, 0.2, 0.3, 0.4, 0.3, 0.2, 0.1});
  // Epochs are counted from the beginning, not from the end of the warm-up.
  expect_rates(rates("step:step_size=1", 2), {0, 0.2, 0.4, 0.4, 0.04, 0.04, 0.04, 0.04});
  EXPECT_THROW(static_cast<void>(rates("onecycle", 2)), UsageError);
  EXPECT_THROW(static_cast<void>(rates("plateau", 2)), UsageError);
}

TEST(Schedules, AllCanBeMade) {
  for (const ScheduleEntry& entry : schedules()) {
    const std::string text =
        entry.row.name == "piecewise" ? "piecewise:boundaries=1,values=0.1/0.01" : entry.row.name;
    EXPECT_EQ(make_schedule(text, sgd(), {.epochs = 3, .updates_per_epoch = 5}).has_value(),
              entry.row.name != "constant")
        << entry.row.name;
  }
}

TEST(Optimizers, AllUpdateByTheRateThatWasAskedFor) {
  for (const OptimizerEntry& entry : optimizers()) {
    at::Tensor weight = at::ones({2, 2}).requires_grad_();
    at::Tensor bias = at::ones({2}).requires_grad_();
    optim::Optimizer optimizer =
        entry.build({.parameters = {{"w", weight}, {"b", bias}}, .lr = 0.25, .weight_decay = 0.1},
                    Values(kOptimizers, entry.row, {{"decay", "weights"}}));
    EXPECT_EQ(optimizer.lr(), 0.25) << entry.row.name;
    ASSERT_EQ(optimizer.param_groups().size(), 2) << entry.row.name;
    EXPECT_EQ(optimizer.param_groups()[1].names, std::vector<std::string>{"b"}) << entry.row.name;
    (weight.sum() + bias.sum()).backward();
    optimizer.step();
    EXPECT_LT(weight.max().item<double>(), 1) << entry.row.name;
  }
}

}  // namespace
}  // namespace argosy::recipes
