// A training that was asked to stop, or that a signal ended, stays what it was.
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/train/callbacks/early_stopping.h"
#include "argosy/train/resume_test_support.h"

namespace argosy::train {
namespace {

using testing::adam_model;
using testing::blobs;
using testing::hash;
using testing::options_in;
using testing::run_job;
using testing::SignalAt;
using ::testing::SizeIs;
using testing::small_net;
using testing::SmallNet;

/// A signal comes to one rank in the middle of the first evaluation; counts its batches.
struct SignalInEvaluation : Callback {
  int rank;
  int64_t batches = 0;
  explicit SignalInEvaluation(int of) : rank(of) {}
  void on_eval_batch_begin(const EvalStep& now) override {
    ++batches;
    (void)torch::rand({3});  // an evaluation that is made twice must not draw twice
    if (rank == 0 && now.batch == 5) {
      ::raise(SIGTERM);
    }
  }
};

TEST(Resume, ASignalEndsAnEvaluationAndItIsMadeAnew) {
  for (const int ranks : {1, 3}) {
    const test::TempDir folder;
    run_job(ranks, [&](int rank) {
      const auto set = blobs(31);
      const auto eval = blobs(100 * ranks + 1);
      const auto draws = std::make_shared<SignalInEvaluation>(-1);
      FitOptions options = options_in((folder.path() / "whole").string());
      options.data.eval_batch_size = 2;
      options.callbacks = {draws};
      const SmallNet whole = small_net();
      const History straight = adam_model(whole).fit(set, eval, options);
      const double next = torch::rand({1}).item<double>();

      options.checkpoint.dir = (folder.path() / "cut").string();
      const auto signal = std::make_shared<SignalInEvaluation>(rank);
      options.callbacks = {signal};
      const SmallNet net = small_net();
      const History cut = adam_model(net).fit(set, eval, options);
      ASSERT_EQ(cut.ended, Ended::kPreempted);
      EXPECT_LT(signal->batches, 10);
      EXPECT_THAT(cut.epochs, SizeIs(0));

      options.resume = Resume::kMust;
      options.callbacks = {std::make_shared<SignalInEvaluation>(-1)};
      const SmallNet again;
      const History rest = adam_model(again).fit(set, eval, options);
      EXPECT_EQ(torch::rand({1}).item<double>(), next);
      EXPECT_EQ(hash(again), hash(whole)) << ranks << " ranks";
      ASSERT_EQ(rest.epochs.size(), straight.epochs.size());
      for (std::size_t i = 0; i < rest.epochs.size(); ++i) {
        EXPECT_EQ(rest.epochs[i].to_string(), straight.epochs[i].to_string());
        EXPECT_EQ(rest.epochs[i]["eval_loss"], straight.epochs[i]["eval_loss"]);
      }
    });
  }
}

TEST(Resume, ATrainingThatWasStoppedStaysStopped) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    FitOptions options = options_in(folder.path().string());
    options.epochs = 20;
    options.resume = Resume::kAuto;
    options.callbacks = {EarlyStopping({.monitor = "loss", .min_delta = 100, .verbose = 0})};
    const SmallNet net = small_net();
    const History first = adam_model(net).fit(set, set, options);
    ASSERT_EQ(first.ended, Ended::kStopped);
    const SmallNet other;
    const History again = adam_model(other).fit(set, set, options);
    EXPECT_EQ(again.ended, Ended::kStopped);
    EXPECT_EQ(again.reason, first.reason);
    EXPECT_THAT(again.epochs, SizeIs(0));
    EXPECT_EQ(hash(other), hash(net));
  });
}

/// Somebody ends the training with the epoch, and a signal comes at the same time.
struct StopAndSignal : Callback {
  void on_epoch_end(const Epoch& epoch) override {
    epoch.model.stop_training("enough");
    ::raise(SIGTERM);
  }
};

TEST(Resume, ATrainingThatWasStoppedWhenASignalCameStaysStopped) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    FitOptions options = options_in(folder.path().string());
    options.callbacks = {StopAndSignal()};
    const SmallNet net = small_net();
    const History cut = adam_model(net).fit(set, options);
    ASSERT_EQ(cut.ended, Ended::kPreempted);
    ASSERT_EQ(cut.steps, 13);
    options.resume = Resume::kMust;
    options.callbacks.clear();
    const SmallNet other;
    const History again = adam_model(other).fit(set, options);
    EXPECT_EQ(again.ended, Ended::kStopped);
    EXPECT_EQ(again.reason, "enough");
    EXPECT_EQ(again.steps, 13) << "not an epoch more";
    EXPECT_EQ(hash(other), hash(net));
  });
}

/// One rank asks for the end after an update.
struct AskToStop : Callback {
  int rank;
  int64_t step;
  bool now;
  AskToStop(int on_rank, int64_t after, bool at_once) : rank(on_rank), step(after), now(at_once) {}
  void on_train_batch_end(const Step& done) override {
    if (done.step == step && done.model.group().rank() == rank) {
      now ? done.model.stop("enough") : done.model.stop_training("enough");
    }
  }
};

/// A training that was asked to stop, and the same one that a signal ended before it did.
void expect_stopped_alike(int ranks, const AskToStop& ask, const AnyCallback& signal) {
  const test::TempDir folder;
  run_job(ranks, [&](int) {
    const auto set = blobs(25 * ranks);  // 7 updates an epoch
    const auto eval = blobs(100 * ranks + 1);
    const auto train = [&](const char* name, const SmallNet& net, std::vector<AnyCallback> with) {
      FitOptions options = options_in((folder.path() / name).string());
      options.data.eval_batch_size = 2;
      options.callbacks = std::move(with);
      options.resume = Resume::kAuto;
      return adam_model(net).fit(set, eval, options);
    };
    const SmallNet whole = small_net();
    const History straight = train("whole", whole, {ask});
    ASSERT_EQ(straight.ended, Ended::kStopped);
    ASSERT_EQ(train("cut", small_net(), {ask, signal}).ended, Ended::kPreempted);
    const SmallNet again;
    const History rest = train("cut", again, {});
    EXPECT_EQ(rest.ended, Ended::kStopped);
    EXPECT_EQ(rest.reason, straight.reason);
    EXPECT_EQ(rest.steps, straight.steps);
    EXPECT_EQ(hash(again), hash(whole));
    ASSERT_EQ(rest.epochs.size(), 1);
    EXPECT_EQ(rest.epochs.back().to_string(), straight.epochs.back().to_string());
  });
}

TEST(Resume, WhatWasAskedForBeforeASignalEndedTheEvaluationIsKept) {
  for (const bool at_once : {false, true}) {
    expect_stopped_alike(1, AskToStop(0, 7, at_once), SignalInEvaluation(0));
    expect_stopped_alike(2, AskToStop(1, 7, at_once), AnyCallback(SignalInEvaluation(0)));
  }
}

TEST(Resume, WhatWasAskedForInTheUpdateThatASignalEndedIsKept) {
  for (const bool at_once : {false, true}) {
    expect_stopped_alike(1, AskToStop(0, 9, at_once), SignalAt(9));
    expect_stopped_alike(2, AskToStop(1, 9, at_once), SignalAt(9));
  }
}

}  // namespace
}  // namespace argosy::train
