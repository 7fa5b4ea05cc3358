// A training that was left goes on as if nobody had left it.
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/train/callbacks/early_stopping.h"
#include "argosy/train/callbacks/reduce_lr_on_plateau.h"
#include "argosy/train/resume_test_support.h"

#include "tests/support/error_text.h"

namespace argosy::train {
namespace {

using testing::adam_model;
using testing::blobs;
using testing::hash;
using ::testing::HasSubstr;
using testing::options_in;
using testing::run_job;
using testing::Samples;
using testing::SignalAt;
using ::testing::SizeIs;
using testing::small_net;
using testing::SmallNet;

TEST(Resume, GoesOnToTheBitFromAnyUpdateOnAnyRank) {
  const test::TempDir folder;
  run_job(2, [&](int) {
    const auto set = blobs(50);
    const SmallNet whole = small_net();
    const History straight =
        adam_model(whole).fit(set, set, options_in((folder.path() / "whole").string()));
    for (const int64_t stop : {1, 6, 7, 8, 14, 20, 21}) {  // 7 updates an epoch
      const std::string save_dir = (folder.path() / ("stop" + std::to_string(stop))).string();
      FitOptions options = options_in(save_dir);
      options.accumulate_grad_batches = 1;
      options.callbacks = {SignalAt(stop)};
      {
        const SmallNet net = small_net();
        const History cut = adam_model(net).fit(set, set, options);
        ASSERT_EQ(cut.ended, Ended::kPreempted);
        ASSERT_EQ(cut.steps, stop);
        EXPECT_THAT(cut.reason, HasSubstr("SIGUSR1"));
      }
      torch::manual_seed(99);
      const SmallNet net;  // other weights: all comes from the checkpoint
      options.callbacks.clear();
      options.resume = Resume::kMust;
      const History rest = adam_model(net).fit(set, set, options);
      EXPECT_EQ(hash(net), hash(whole)) << "stopped after update " << stop;
      EXPECT_EQ(rest.steps, straight.steps);
      ASSERT_FALSE(rest.epochs.empty());
      for (std::size_t i = 1; i <= rest.epochs.size(); ++i) {
        const Logs& was = straight.epochs[straight.epochs.size() - i];
        const Logs& is = rest.epochs[rest.epochs.size() - i];
        EXPECT_EQ(was.to_string(), is.to_string());
        EXPECT_EQ(was["loss"], is["loss"]);
        EXPECT_EQ(was["eval_loss"], is["eval_loss"]);
      }
    }
  });
}

TEST(Resume, TheBestWeightsOfEarlyStoppingAreKept) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    const auto train_in = [&](const char* name, std::optional<int64_t> stop) {
      FitOptions options = options_in((folder.path() / name).string());
      options.epochs = 20;
      options.resume = Resume::kAuto;
      options.callbacks = {EarlyStopping({.monitor = "loss",
                                          .patience = 1,
                                          .min_delta = 100,
                                          .restore_best_weights = true,
                                          .verbose = 0})};
      if (stop.has_value()) {
        options.callbacks.emplace_back(SignalAt(*stop));
      }
      const SmallNet net = small_net();
      (void)adam_model(net).fit(set, set, options);
      return hash(net);
    };
    const std::string whole = train_in("whole", std::nullopt);
    (void)train_in("parts", 20);  // the best epoch, the first, lies behind
    EXPECT_EQ(train_in("parts", std::nullopt), whole);
  });
}

TEST(Fit, NumItersCountsTheUpdatesOfThisTraining) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    Model model = adam_model(small_net());
    (void)model.fit(set, {.batch_size = 5, .num_iters = 7, .log = {.verbose = 0}});
    EXPECT_EQ(model.fit(set, {.batch_size = 5, .num_iters = 3, .log = {.verbose = 0}}).steps, 10);
    FitOptions options = options_in(folder.path().string());
    options.resume = Resume::kAuto;
    options.num_iters = 4;
    EXPECT_EQ(model.fit(set, options).steps, 14);
    options.num_iters = 6;
    EXPECT_EQ(model.fit(set, options).steps, 16) << "goes on, and makes two more";
  });
}

TEST(Resume, MoreEpochsGoOnWhereTheLastEnded) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    const SmallNet whole = small_net();
    (void)adam_model(whole).fit(set, options_in((folder.path() / "whole").string()));
    FitOptions options = options_in((folder.path() / "parts").string());
    options.resume = Resume::kAuto;
    options.epochs = 1;
    (void)adam_model(small_net()).fit(set, options);
    options.epochs = 3;
    const SmallNet net = small_net();
    const History rest = adam_model(net).fit(set, options);
    EXPECT_THAT(rest.epochs, SizeIs(2));
    EXPECT_EQ(hash(net), hash(whole));
  });
}

TEST(Resume, APlateauGoesOnCounting) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    const auto train = [&](const SmallNet& net, const char* name, int64_t epochs) {
      FitOptions options = options_in((folder.path() / name).string());
      options.epochs = epochs;
      options.resume = Resume::kAuto;
      options.callbacks = {ReduceLROnPlateau(
          {.factor = 0.5, .patience = 2, .min_delta = 1000, .cooldown = 1, .verbose = 0})};
      optim::Adam optimizer(net, {.lr = 0.05});
      Model model(net);
      model.prepare(optimizer, loss::CrossEntropy());
      (void)model.fit(set, options);
      return optimizer.lr();
    };
    const SmallNet whole = small_net();
    const double expected = train(whole, "whole", 9);
    ASSERT_LT(expected, 0.05);
    (void)train(small_net(), "parts", 3);
    (void)train(small_net(), "parts", 5);
    const SmallNet net;
    EXPECT_EQ(train(net, "parts", 9), expected);
    EXPECT_EQ(hash(net), hash(whole));
  });
}

TEST(Resume, AnotherBatchSizeAndAccumulationAreTakenUpAtOnce) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(48);
    for (const bool in_epoch : {false, true}) {
      FitOptions options = options_in((folder.path() / (in_epoch ? "in" : "end")).string());
      options.resume = Resume::kAuto;
      options.epochs = 1;
      options.accumulate_grad_batches = 3;
      if (in_epoch) {
        options.num_iters = 1;
      }
      (void)adam_model(small_net()).fit(set, options);
      auto samples = std::make_shared<Samples>();
      options.num_iters.reset();
      options.accumulate_grad_batches = 2;
      if (!in_epoch) {
        options.epochs = 2;
        options.batch_size = 8;
      }
      options.callbacks = {samples};
      (void)adam_model(small_net()).fit(set, options);
      EXPECT_THAT(samples->of_updates,
                  ::testing::ElementsAreArray(in_epoch ? std::vector<int64_t>{8, 8, 8, 8, 4}
                                                       : std::vector<int64_t>{16, 16, 16}));
    }
  });
}

}  // namespace
}  // namespace argosy::train
