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

using testing::blobs;
using testing::hash;
using testing::options_in;
using testing::prepared;
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
      options.eval_batch_size = 2;
      options.callbacks = {draws};
      const SmallNet whole = small_net();
      const History straight = prepared(whole).fit(set, eval, options);
      const double next = torch::rand({1}).item<double>();

      options.save_dir = (folder.path() / "cut").string();
      const auto signal = std::make_shared<SignalInEvaluation>(rank);
      options.callbacks = {signal};
      const SmallNet net = small_net();
      const History cut = prepared(net).fit(set, eval, options);
      ASSERT_EQ(cut.ended, Ended::kPreempted);
      EXPECT_LT(signal->batches, 10);
      EXPECT_THAT(cut.epochs, SizeIs(0));

      options.resume = Resume::kMust;
      options.callbacks = {std::make_shared<SignalInEvaluation>(-1)};
      const SmallNet again;
      const History rest = prepared(again).fit(set, eval, options);
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
    const History first = prepared(net).fit(set, set, options);
    ASSERT_EQ(first.ended, Ended::kStopped);
    const SmallNet other;
    const History again = prepared(other).fit(set, set, options);
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
    const History cut = prepared(net).fit(set, options);
    ASSERT_EQ(cut.ended, Ended::kPreempted);
    ASSERT_EQ(cut.steps, 13);
    options.resume = Resume::kMust;
    options.callbacks.clear();
    const SmallNet other;
    const History again = prepared(other).fit(set, options);
    EXPECT_EQ(again.ended, Ended::kStopped);
    EXPECT_EQ(again.reason, "enough");
    EXPECT_EQ(again.steps, 13) << "not an epoch more";
    EXPECT_EQ(hash(other), hash(net));
  });
}

}  // namespace
}  // namespace argosy::train
