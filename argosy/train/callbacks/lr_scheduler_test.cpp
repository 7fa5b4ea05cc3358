#include "argosy/train/callbacks/lr_scheduler.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/optim/lr_decay.h"
#include "argosy/optim/sgd.h"
#include "argosy/train/model.h"
#include "argosy/train/train_test_support.h"

#include "tests/support/error_text.h"
#include <nlohmann/json.hpp>

namespace argosy::train {
namespace {

using testing::blobs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::run_job;
using testing::small_net;

struct Rates : Callback {
  std::vector<double>* all;
  explicit Rates(std::vector<double>& into) : all(&into) {}
  void on_before_update(const Step& step) override { all->push_back(step.lr); }
};

optim::LRScheduler halving(const optim::Optimizer& optimizer) {
  return optim::StepLR(optimizer, {.step_size = 1, .gamma = 0.5});
}

struct LRSchedulerTest {
  testing::SmallNet net = small_net();
  optim::SGD optimizer{net, {.lr = 0.8}};
  Model model{net};
  std::vector<double> rates{};

  void fit(FitOptions options) {
    model.prepare(optimizer, loss::CrossEntropy());
    options.log.verbose = 0;
    options.callbacks.emplace_back(Rates(rates));
    model.fit(blobs(12), options);
  }
};

TEST(LRScheduler, MovesAtItsUnit) {
  run_job(1, [](int) {
    LRSchedulerTest by_step;
    by_step.fit(
        {.batch_size = 4, .callbacks = {LRScheduler(optim::per_step(halving(by_step.optimizer)))}});
    EXPECT_THAT(by_step.rates, ElementsAre(0.8, 0.4, 0.2));
    LRSchedulerTest by_epoch;
    by_epoch.fit({.batch_size = 6,
                  .epochs = 2,
                  .callbacks = {LRScheduler(optim::per_epoch(halving(by_epoch.optimizer)))}});
    EXPECT_THAT(by_epoch.rates, ElementsAre(0.8, 0.8, 0.4, 0.4));
    LRSchedulerTest updates;
    updates.fit({.batch_size = 3,
                 .callbacks = {LRScheduler(optim::per_step(halving(updates.optimizer)))},
                 .accumulate_grad_batches = 2});
    EXPECT_THAT(updates.rates, ElementsAre(0.8, 0.4));
  });
}

struct RatesAtEnd : Callback {
  std::vector<double>* all;
  explicit RatesAtEnd(std::vector<double>& into) : all(&into) {}
  void on_train_batch_end(const Step& step) override { all->push_back(step.lr); }
};

TEST(Fit, TellsTheRateThatTheUpdateWasMadeWith) {
  run_job(1, [](int) {
    const testing::SmallNet net = small_net();
    const optim::SGD optimizer(net, {.lr = 0.8});
    Model model(net);
    model.prepare(
        optimizer, loss::CrossEntropy(), {}, {.schedule = optim::per_step(halving(optimizer))});
    std::vector<double> rates;
    model.fit(blobs(12),
              {.batch_size = 4, .callbacks = {RatesAtEnd(rates)}, .log = {.verbose = 0}});
    EXPECT_THAT(rates, ElementsAre(0.8, 0.4, 0.2));
  });
}

TEST(LRScheduler, AFigureThatDoesNotImproveLowersTheRate) {
  run_job(1, [](int) {
    LRSchedulerTest plateau;
    plateau.fit({.batch_size = 12,
                 .epochs = 3,
                 .callbacks = {LRScheduler(
                     optim::ReduceLROnPlateau(
                         plateau.optimizer,
                         {.factor = 0.5, .patience = 0, .threshold = 1e9, .cooldown = 9}),
                     {.monitor = "loss"})}});
    EXPECT_THAT(plateau.rates, ElementsAre(0.8, 0.8, 0.4));
  });
}

/// With an evaluation set; the schedule is the model's or a callback's.
void fit_by(const std::string& monitor, bool prepared, LRSchedulerTest& test) {
  const optim::ScheduleHandle plateau = optim::ReduceLROnPlateau(
      test.optimizer, {.factor = 0.5, .patience = 0, .threshold = 1e9, .cooldown = 9});
  FitOptions options{
      .batch_size = 12, .epochs = 3, .callbacks = {Rates(test.rates)}, .log = {.verbose = 0}};
  if (prepared) {
    test.model.prepare(
        test.optimizer, loss::CrossEntropy(), {}, {.schedule = plateau, .monitor = monitor});
  } else {
    test.model.prepare(test.optimizer, loss::CrossEntropy());
    options.callbacks.emplace_back(LRScheduler(plateau, {.monitor = monitor}));
  }
  test.model.fit(blobs(12), blobs(12), options);
}

TEST(LRScheduler, AFigureThatThereWillNotBeIsSaidBeforeTheFirstUpdate) {
  run_job(1, [](int) {
    for (const bool prepared : {true, false}) {
      for (const char* const monitor : {"loss", "eval_loss"}) {
        LRSchedulerTest known;
        fit_by(monitor, prepared, known);
        EXPECT_THAT(known.rates, ElementsAre(0.8, 0.8, 0.4)) << monitor << prepared;
      }
      LRSchedulerTest unknown;
      EXPECT_THAT(test::error_text<UsageError>([&] { fit_by("accuracy", prepared, unknown); }),
                  HasSubstr("no figure \"accuracy\" to follow: there are loss"));
      EXPECT_THAT(test::error_text<UsageError>([&] { fit_by("loss_scale", prepared, unknown); }),
                  HasSubstr("no figure \"loss_scale\""))
          << "without a scaler";
      EXPECT_TRUE(unknown.rates.empty());
    }
  });
}

TEST(LRScheduler, ItsStateGoesOn) {
  run_job(1, [](int) {
    LRSchedulerTest first;
    const auto callback = std::make_shared<LRScheduler>(optim::per_step(halving(first.optimizer)));
    first.fit({.batch_size = 4, .callbacks = {callback}});
    LRSchedulerTest second;
    LRScheduler resumed(optim::per_step(halving(second.optimizer)));
    resumed.load_state(nlohmann::ordered_json::parse(callback->state().dump()));
    EXPECT_DOUBLE_EQ(second.optimizer.lr(), 0.1);
    EXPECT_EQ(callback->name(), resumed.name());
  });
}

TEST(LRScheduler, TwoSchedulesAreAnError) {
  run_job(1, [](int) {
    const testing::SmallNet net = small_net();
    const optim::SGD optimizer(net, {.lr = 0.8});
    Model model(net);
    model.prepare(
        optimizer, loss::CrossEntropy(), {}, {.schedule = optim::per_epoch(halving(optimizer))});
    EXPECT_THAT(test::error_text<UsageError>([&] {
                  model.fit(blobs(4),
                            {.callbacks = {LRScheduler(optim::per_step(halving(optimizer)))},
                             .log = {.verbose = 0}});
                }),
                HasSubstr("[train.LRScheduler] the model was prepared with a schedule already "
                          "(StepLR)"));
  });
}

TEST(ReduceLROnPlateau, AMonitorWithoutItIsRefused) {
  run_job(1, [](int) {
    const SmallNet net = small_net();
    const optim::SGD sgd(net, {.lr = 0.1});
    Model model(net);
    for (const bool steps : {false, true}) {
      PrepareOptions options{.monitor = "acc"};
      if (steps) {
        options.schedule = optim::per_epoch(optim::StepLR(sgd, {.step_size = 1}));
      }
      EXPECT_THAT(test::error_text<UsageError>([&] { model.prepare(sgd, options); }),
                  ::testing::HasSubstr("monitor = \"acc\" without a schedule that watches"));
    }
    model.prepare(sgd, {.schedule = optim::ReduceLROnPlateau(sgd), .monitor = "acc"});
  });
}

}  // namespace
}  // namespace argosy::train
