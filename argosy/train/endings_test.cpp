// How fit() ends where something else ends it: an exception, a rank that is gone, a signal too
// late.
#include <unistd.h>

#include <csignal>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/exit_codes.h"
#include "argosy/checkpoint/inspect.h"
#include "argosy/optim/sgd.h"
#include "argosy/runs/run_folder.h"
#include "argosy/train/callbacks/model_checkpoint.h"
#include "argosy/train/model.h"
#include "argosy/train/train_test_support.h"

namespace argosy::train {
namespace {

using testing::blobs;
using testing::sgd_model;

/// Each rank's end; no rank says farewell to the others by itself.
std::vector<test::RankOutcome> try_job(int ranks, const std::function<void(int rank)>& fn) {
  const test::TempDir folder;
  return test::try_run_ranks(
      ranks,
      [&](int rank) {
        torch::set_num_threads(1);
        fleet::init({},
                    {.init_method = "file://" + folder.path().string() + "/store",
                     .timeout = std::chrono::seconds(60),  // above the deadline: nobody sits it out
                     .rank = rank,
                     .world_size = ranks});
        fn(rank);
      },
      {.mode = test::RankMode::kProcesses, .deadline = std::chrono::seconds(40)});
}

/// A bug of the user's: an exception that is none of ours, on one rank.
struct Fail : Callback {
  bool here;
  explicit Fail(bool fails) : here(fails) {}
  void on_train_batch_begin(const Step& now) override {
    if (here && now.step == 3) {
      throw std::runtime_error("a bug of the callback");
    }
  }
};

TEST(Endings, AStrangersExceptionOnOneRankLeavesNobodyWaiting) {
  const test::TempDir folder;
  const auto outcomes = try_job(3, [&](int rank) {
    sgd_model().fit(blobs(60),
                    {.batch_size = 4,
                     .epochs = 2,
                     .callbacks = {Fail(rank == 1)},
                     // Writers speak to each other meanwhile.
                     .checkpoint = {.dir = folder.path().string(), .every_steps = 1},
                     .log = {.verbose = 0}});
  });
  EXPECT_EQ(outcomes[1].error_type, "std::runtime_error") << describe(outcomes[1]);
  EXPECT_EQ(outcomes[1].error, "a bug of the callback");
  for (const int other : {0, 2}) {
    EXPECT_EQ(outcomes[other].error_type, "argosy::CommError") << describe(outcomes[other]);
  }
  EXPECT_TRUE(checkpoint::find_newest(folder.path().string()).path.has_value());
}

/// The same in another hook.
struct FailIn : Callback {
  std::string hook;
  explicit FailIn(std::string in) : hook(std::move(in)) {}
  void here(const char* now) const {
    if (hook == now) {
      throw std::runtime_error("a bug in " + hook);
    }
  }
  void on_train_begin(const Training& /*training*/) override { here("on_train_begin"); }
  void on_epoch_end(const Epoch& /*epoch*/) override { here("on_epoch_end"); }
  void on_save_point(const SavePoint& point) override {
    if (point.epoch_end) {
      here("on_save_point");
    }
  }
  void on_eval_begin(const Evaluation& /*evaluation*/) override { here("on_eval_begin"); }
  void on_eval_batch_end(const EvalStep& step) override {
    if (step.batch == 11) {  // after the ranks have asked each other
      here("on_eval_batch_end");
    }
  }
  void on_eval_end(const Evaluation& /*evaluation*/) override { here("on_eval_end"); }
};

TEST(Endings, AStrangersExceptionOnOneRankInAnyHookLeavesNobodyWaiting) {
  for (const char* const hook : {"on_train_begin",
                                 "on_epoch_end",
                                 "on_save_point",
                                 "on_eval_begin",
                                 "on_eval_batch_end",
                                 "on_eval_end"}) {
    const test::TempDir folder;
    const auto outcomes = try_job(2, [&](int rank) {
      sgd_model().fit(blobs(16),
                      blobs(60),
                      {.batch_size = 4,
                       .epochs = 2,
                       .callbacks = {FailIn(rank == 1 ? hook : "nowhere")},
                       .data = {.eval_batch_size = 2},
                       .checkpoint = {.dir = folder.path().string()},
                       .log = {.verbose = 0}});
    });
    EXPECT_EQ(outcomes[1].error, std::string("a bug in ") + hook) << describe(outcomes[1]);
    EXPECT_EQ(outcomes[0].error_type, "argosy::CommError") << hook << describe(outcomes[0]);
  }
}

/// A signal comes to rank 0, and rank 1 dies as soon as all is saved.
struct DieWhenSaved : Callback {
  int rank;
  explicit DieWhenSaved(int of) : rank(of) {}
  void on_train_batch_begin(const Step& now) override {
    if (rank == 0 && now.step == 3) {
      ::raise(SIGTERM);
    }
  }
  void on_train_end(const Training& /*training*/) override {
    if (rank == 1) {
      ::raise(SIGKILL);
    }
  }
};

TEST(Endings, ASavedTrainingAsksToBeResumedAlsoWhereARankIsGone) {
  const test::TempDir folder;
  const auto outcomes = try_job(2, [&](int rank) {
    sgd_model().fit(
        blobs(40),
        {.batch_size = 4,
         .epochs = 2,
         .callbacks = {ModelCheckpoint({.dir = folder.path().string()}), DieWhenSaved(rank)},
         .log = {.verbose = 0}});
  });
  EXPECT_EQ(outcomes[1].signal, SIGKILL) << describe(outcomes[1]);
  EXPECT_EQ(outcomes[0].exit_code, kResumeExitCode) << describe(outcomes[0]);
  EXPECT_THAT(outcomes[0].output, ::testing::HasSubstr("saved a checkpoint at step 4"));
  EXPECT_EQ(checkpoint::find_newest(folder.path().string()).manifest.value().step, 4);
}

/// A signal comes when the last update is done.
struct SignalAtTheEnd : Callback {
  void on_train_end(const Training& /*training*/) override { ::raise(SIGTERM); }
};

/// Ctrl-C, to all ranks or to one.
struct Interrupt : Callback {
  std::optional<int> rank;
  explicit Interrupt(std::optional<int> which = std::nullopt) : rank(which) {}
  void on_train_batch_begin(const Step& now) override {
    if (now.step == 3 && now.model.group().rank() == rank.value_or(now.model.group().rank())) {
      ::raise(SIGINT);
    }
  }
};

TEST(Endings, CtrlCSavesAndEndsByIt) {
  for (const int ranks : {1, 2}) {
    const test::TempDir folder;
    const auto outcomes = try_job(ranks, [&](int /*rank*/) {
      sgd_model().fit(blobs(40),
                      {.batch_size = 4,
                       .run_dir = folder.path().string(),
                       .callbacks = {Interrupt()},
                       .log = {.verbose = 0}});
    });
    for (const test::RankOutcome& outcome : outcomes) {
      EXPECT_EQ(outcome.signal, SIGINT) << describe(outcome);
    }
    EXPECT_THAT(
        outcomes[0].output,
        ::testing::HasSubstr("SIGINT came: saved a checkpoint at step 4. Run the same "
                             "command with resume auto (argosy train: --resume auto) to resume\n"));
    EXPECT_EQ(
        checkpoint::find_newest((folder.path() / "checkpoints").string()).manifest.value().step, 4);
    EXPECT_EQ(runs::read_run_config(folder.path().string()).exit_code, 128 + SIGINT);
  }
}

TEST(Endings, SigintOfOneRankAloneAsksToBeStartedAgain) {
  for (const int interrupted : {0, 1}) {
    const test::TempDir folder;
    const auto outcomes = try_job(2, [&](int /*rank*/) {
      sgd_model().fit(blobs(40),
                      {.batch_size = 4,
                       .callbacks = {Interrupt(interrupted)},
                       .checkpoint = {.dir = folder.path().string()},
                       .log = {.verbose = 0}});
    });
    for (const test::RankOutcome& outcome : outcomes) {
      EXPECT_EQ(outcome.exit_code, kResumeExitCode) << describe(outcome);
    }
  }
}

TEST(Endings, ASignalAfterTheTrainingsEndIsTheProgramsAgain) {
  const test::TempDir folder;
  const auto fit = [&](int /*rank*/) {
    const History history = sgd_model().fit(blobs(40),
                                            {.batch_size = 4,
                                             .callbacks = {SignalAtTheEnd()},
                                             .checkpoint = {.dir = folder.path().string()},
                                             .log = {.verbose = 0}});
    EXPECT_EQ(history.ended, Ended::kFinished);
    ::_exit(3);  // reached only where the program has a handler
  };
  const test::RankOutcome killed = try_job(1, fit).front();
  EXPECT_EQ(killed.signal, SIGTERM) << describe(killed);
  EXPECT_EQ(checkpoint::find_newest(folder.path().string()).manifest.value().step, 10);
}

}  // namespace
}  // namespace argosy::train
