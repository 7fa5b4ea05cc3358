#include "argosy/train/callbacks/loggers.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/metrics/accuracy.h"
#include "argosy/optim/sgd.h"
#include "argosy/train/callbacks/earlier_lines.h"
#include "argosy/train/model.h"
#include "argosy/train/resume_test_support.h"
#include "argosy/train/train_test_support.h"

#include "tests/support/error_text.h"
#include <nlohmann/json.hpp>

namespace argosy::train {
namespace {

using nlohmann::json;
using testing::blobs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::run_job;
using testing::sgd_model;

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::vector<json> records_of(const std::string& path) {
  std::vector<json> records;
  for (const std::string& line : lines_of(path)) {
    records.push_back(json::parse(line));
  }
  return records;
}

/// Remembers what fit() itself says.
struct Say : Callback {
  std::vector<double>* losses;
  explicit Say(std::vector<double>& into) : losses(&into) {}
  void on_train_batch_end(const Step& step) override { losses->push_back(step.loss); }
};

TEST(JsonlLogger, WritesTheRunsSchemaWithTheFiguresOfAllRanks) {
  const test::TempDir folder;
  const std::string path = folder.path().string() + "/a/metrics.jsonl";
  run_job(2, [&](int rank) {
    std::vector<double> losses;
    Model model = sgd_model();
    const History history = model.fit(blobs(32),
                                      blobs(8),
                                      {.batch_size = 4,
                                       .epochs = 2,
                                       .callbacks = {Say(losses), JsonlLogger({.path = path})},
                                       .log = {.verbose = 0, .freq = 3}});
    if (rank != 0) {
      return;
    }
    const std::vector<json> records = records_of(path);
    ASSERT_EQ(records.size(), 6U);  // batches 3 and 4 of each epoch, and its evaluation
    std::vector<std::string> places;
    for (const json& record : records) {
      places.push_back(record["split"].get<std::string>() + " " + record["epoch"].dump() + " " +
                       record["step"].dump());
    }
    EXPECT_THAT(
        places,
        ElementsAre("train 1 3", "train 1 4", "eval 1 4", "train 2 7", "train 2 8", "eval 2 8"));
    EXPECT_EQ(records[0]["loss"].get<double>(), losses[2]);
    EXPECT_EQ(records[4]["loss"].get<double>(), losses[7]);
    EXPECT_EQ(records[0]["lr"], 0.1);
    EXPECT_GT(records[0]["samples_per_second"].get<double>(), 0);
    EXPECT_GE(records[0]["input_wait"].get<double>(), 0);
    EXPECT_LE(records[0]["input_wait"].get<double>(), 1);
    EXPECT_EQ(records[4]["metrics"]["acc"].get<double>(), history.epochs[1]["acc"]);
    EXPECT_EQ(records[5]["loss"].get<double>(), history.epochs[1]["eval_loss"]);
    EXPECT_EQ(records[5]["metrics"]["acc"].get<double>(), history.epochs[1]["eval_acc"]);
    EXPECT_FALSE(records[5].contains("lr"));
  });
}

TEST(JsonlLogger, ARecordOfAccumulatedBatchesWaitsForTheirUpdate) {
  const test::TempDir folder;
  const std::string path = folder.path().string() + "/metrics.jsonl";
  run_job(1, [&](int) {
    sgd_model().fit(blobs(40),
                    {.batch_size = 4,
                     .callbacks = {JsonlLogger({.path = path})},
                     .accumulate_grad_batches = 4,
                     .log = {.verbose = 0, .freq = 3}});
    std::vector<int64_t> steps;
    for (const json& record : records_of(path)) {
      steps.push_back(record["step"].get<int64_t>());
      EXPECT_TRUE(record["loss"].is_number());  // not that of no update: NaN, null
      EXPECT_TRUE(record["metrics"].contains("acc"));
    }
    EXPECT_THAT(steps, ElementsAre(1, 2, 3));
  });
}

TEST(TrainWindow, CountsSamplesOverTheTimeWithoutEvaluations) {
  run_job(1, [](int) {
    using namespace std::chrono_literals;
    auto now = detail::TrainWindow::Clock::time_point() + 1s;
    detail::TrainWindow window(2, [&] { return now; });
    Model model = sgd_model();
    const Logs none;
    const auto batch = [&](int64_t number) {
      return window.add({.model = model,
                         .batch = number,
                         .batches = 3,
                         .step = number + 1,
                         .samples = 50,
                         .logs = none});
    };
    window.begin_epoch();
    window.add(Phase{PhaseKind::kDataWait, now, now + 500ms});
    window.add(Phase{PhaseKind::kForward, now, now + 900ms});
    now += 2s;
    EXPECT_FALSE(batch(0));
    now += 2s;
    const auto first = batch(1);
    ASSERT_TRUE(first);
    EXPECT_DOUBLE_EQ(first->samples_per_second, 25);
    EXPECT_DOUBLE_EQ(first->input_wait, 0.125);
    now += 1s;
    const auto last = batch(2);
    ASSERT_TRUE(last);
    EXPECT_DOUBLE_EQ(last->samples_per_second, 50);
    EXPECT_DOUBLE_EQ(last->input_wait, 0);
    now += 60s;  // an evaluation
    window.begin_epoch();
    now += 1s;
    EXPECT_FALSE(batch(0));
    EXPECT_DOUBLE_EQ(batch(1)->samples_per_second, 100);
  });
}

TEST(CsvLogger, HasARowForEachEpochOfSeveralFits) {
  const test::TempDir folder;
  const std::string run = folder.path().string() + "/run";
  run_job(2, [&](int) {
    Model model = sgd_model();
    const FitOptions options{.batch_size = 4,
                             .epochs = 2,
                             .callbacks = {CsvLogger({.path = run + "/epochs.csv"})},
                             .log = {.verbose = 0}};
    model.fit(blobs(32), blobs(8), options);
    model.fit(blobs(32), blobs(8), options);
  });
  const std::vector<std::string> rows = lines_of(run + "/epochs.csv");
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[0], "epoch,step,seconds,lr,input_wait,loss,acc,eval_loss,eval_acc");
  EXPECT_THAT(rows[1], ::testing::StartsWith("1,4,"));
  EXPECT_THAT(rows[4], ::testing::StartsWith("2,16,"));
  EXPECT_THAT(rows[4], HasSubstr(",0.1,"));
}

TEST(CsvLogger, AFigureThatComesLaterAddsAColumn) {
  const test::TempDir folder;
  const std::string run = folder.path().string();
  run_job(1, [&](int) {
    FitOptions options{.batch_size = 4,
                       .epochs = 4,
                       .run_dir = run,
                       .resume = Resume::kAuto,
                       .callbacks = {CsvLogger()},
                       .eval_freq = 2,
                       .checkpoint = {.on_signal = OnSignal::kSaveAndReturn},
                       .log = {.verbose = 0}};
    options.training_step = [](TrainingStep& step) {
      if (step.place().epoch >= 2) {
        step.log("late", 7.0);
      }
      return step.loss(step.forward());
    };
    FitOptions stopped = options;
    stopped.callbacks.emplace_back(
        testing::SignalAt(15));  // in the second epoch, which is evaluated
    sgd_model().fit(blobs(32), blobs(8), stopped);
    sgd_model().fit(blobs(32), blobs(8), options);
  });
  const std::vector<std::string> rows = lines_of(run + "/epochs.csv");
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[0], "epoch,step,seconds,lr,input_wait,loss,acc,eval_loss,eval_acc,late");
  EXPECT_THAT(rows[1], ::testing::EndsWith(",,,"));
  EXPECT_THAT(rows[2], ::testing::Not(HasSubstr(",,")));
  EXPECT_THAT(rows[2], ::testing::EndsWith(","));
  EXPECT_THAT(rows[3], ::testing::EndsWith(",,,7"));
  EXPECT_THAT(rows[4], ::testing::EndsWith(",7"));
}

/// Ends the training where nobody expects it: after the epoch's lines, before its checkpoint.
struct KilledAtTheEnd : Callback {
  void on_epoch_end(const Epoch& /*epoch*/) override { throw std::runtime_error("killed"); }
};

TEST(Loggers, AnEpochThatEndsOnceMoreHasItsLinesOnce) {
  const test::TempDir folder;
  const std::string run = folder.path().string();
  run_job(1, [&](int) {
    FitOptions options{
        .batch_size = 4,
        .epochs = 2,
        .run_dir = run,
        .resume = Resume::kAuto,
        .callbacks = {CsvLogger(), JsonlLogger({.path = run + "/own.jsonl"}), KilledAtTheEnd()},
        .checkpoint = {.every_steps = 1},
        .log = {.verbose = 0}};
    EXPECT_THROW(sgd_model().fit(blobs(32), blobs(8), options), std::runtime_error);
    options.callbacks.pop_back();
    sgd_model().fit(blobs(32), blobs(8), options);
  });
  EXPECT_EQ(lines_of(run + "/epochs.csv").size(), 3U);
  int evaluations = 0;
  for (const json& record : records_of(run + "/own.jsonl")) {
    evaluations += record["split"] == "eval" ? 1 : 0;
  }
  EXPECT_EQ(evaluations, 2);
}

TEST(Loggers, WithoutAPathOrARunTheyAreRefused) {
  run_job(1, [](int) {
    EXPECT_THAT(test::error_text<UsageError>([&] {
                  sgd_model().fit(blobs(4), {.callbacks = {JsonlLogger()}, .log = {.verbose = 0}});
                }),
                HasSubstr("no path, and fit() has no run_dir either"));
  });
}

struct EarlierLines : ::testing::Test {
  test::TempDir folder{};
  std::string path = (folder.path() / "log").string();
  static std::optional<int64_t> number(const std::string& line) {
    return line == "text" ? std::nullopt : std::optional<int64_t>(std::stoll(line));
  }
  void write(const std::string& text) const { std::ofstream(path) << text; }
};

TEST_F(EarlierLines, BeyondTheStepAndATornOneAreTakenOut) {
  write("text\n1\n2\n5\n3\n4\n3");  // the last one without its end
  detail::keep_lines_until(path, 3, number);
  EXPECT_THAT(lines_of(path), ElementsAre("text", "1", "2", "3"));
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
  detail::keep_lines_until(path, 9, number);
  EXPECT_THAT(lines_of(path), ElementsAre("text", "1", "2", "3"));
}

TEST_F(EarlierLines, OfAnotherTrainingMoveAway) {
  detail::keep_lines_until(path, 0, number);  // there is none
  write("1\n2\n");
  detail::keep_lines_until(path, 0, number);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_THAT(lines_of(path + ".old"), ElementsAre("1", "2"));
}

}  // namespace
}  // namespace argosy::train
