#include "argosy/ps/order_log.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/ps/test_job.h"
#include "argosy/rpc/errors.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::ps {
namespace {

using test::error_text;
using ::testing::HasSubstr;
using Kind = OrderEntry::Kind;

class Replays : public ::testing::Test {
 protected:
  /// Records a run of so many workers, and opens it.
  OrderReplay recorded(int workers, const std::vector<OrderEntry>& entries) {
    const OrderOf of{.workers = workers};
    {
      OrderRecord record(folder_, of);
      for (const OrderEntry& entry : entries) {
        record.note(entry);
      }
    }
    return {folder_, of};
  }

  const test::TempDir directory_{};
  const std::string folder_ = directory_.path().string();
};

/// Trains asynchronously, with workers that are late at random, and returns what the tables hold.
/// Where rows have statistics, worker 0 begins days, and drops what nobody saw on the last.
std::vector<float> hurry(const JobOptions& options, const TableSet& tables = two_tables()) {
  std::vector<float> result;
  std::atomic<int> done = 0;
  TestJob::run(tables, options, [&](TableClient& client, int worker) {
    std::mt19937_64 random(std::random_device{}());
    for (int step = 0; step < 15; ++step) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 1500));
      train_step(client, worker, step);
      if (worker == 0 && tables.sparse[0].statistics) {
        client.set_day(step + 1);
        client.shrink();
      }
    }
    ++done;
    while (worker == 0 && done < options.workers) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (worker == 0) {
      result = all_values(client);
    }
  });
  return result;
}

JobOptions three_workers(UpdateMode mode) {
  return {.servers = 2, .workers = 3, .mode = mode, .staleness = 2};
}

/// ARGOSY_PS_REPLAYS=100 is what was promised.
int replays() {
  const std::optional<std::string> said = env::get("ARGOSY_PS_REPLAYS");
  return said ? std::stoi(*said) : 8;
}

TEST_F(Replays, ComeToTheBitsOfTheRecordedRun) {
  for (const UpdateMode mode : {UpdateMode::kAsync, UpdateMode::kHalfAsync, UpdateMode::kGeo}) {
    JobOptions options = three_workers(mode);
    options.record = folder_ + "/" + std::to_string(static_cast<int>(mode));
    const std::vector<float> recorded = hurry(options);
    options.replay = std::exchange(options.record, "");
    for (int i = 0; i < replays(); ++i) {
      ASSERT_EQ(hurry(options), recorded) << "replay " << i;
    }
    // Two runs without a record differ: else nothing was shown.
    options.replay.clear();
    bool differs = false;
    for (int i = 0; i < 10 && !differs; ++i) {
      differs = hurry(options) != recorded;
    }
    EXPECT_TRUE(differs || mode == UpdateMode::kGeo) << "mode " << static_cast<int>(mode);
  }
}

TEST_F(Replays, RepeatWhatWasDoneAboutLateGradients) {
  JobOptions options = three_workers(UpdateMode::kAsync);
  options.late = {.scales_rates = true, .compensation = 0.1};
  options.record = folder_;
  const std::vector<float> recorded = hurry(options);
  options.replay = std::exchange(options.record, "");
  for (int i = 0; i < replays(); ++i) {
    ASSERT_EQ(hurry(options), recorded) << "replay " << i;
  }
  for (const LateOptions& less : {LateOptions{.scales_rates = true}, {.compensation = 0.1}}) {
    options.late = less;
    EXPECT_NE(hurry(options), recorded) << "nothing was late";
  }
}

TEST_F(Replays, HaveUpkeepInItsPlace) {
  TableSet tables = two_tables();
  tables.sparse[0].statistics = true;
  tables.sparse[0].shrink = {.delete_score = 0, .delete_after_unseen_days = 0};
  JobOptions options = three_workers(UpdateMode::kAsync);
  options.record = folder_;
  const std::vector<float> recorded = hurry(options, tables);
  options.replay = std::exchange(options.record, "");
  for (int i = 0; i < replays(); ++i) {
    ASSERT_EQ(hurry(options, tables), recorded) << "replay " << i;
  }
  options.replay.clear();
  EXPECT_NE(hurry(options, tables), recorded) << "nothing was shown";
}

TEST_F(Replays, TakeSixteenBytesForEachPushAndPull) {
  JobOptions options = three_workers(UpdateMode::kAsync);
  options.record = folder_;
  (void)hurry(options);
  for (const char* name : {"/order-0-of-2.bin", "/order-1-of-2.bin"}) {
    // 15 steps of 3 workers, each a pull and a push, the three pulls of all_values(), and the end.
    EXPECT_EQ(std::filesystem::file_size(folder_ + name), 24U + 16U * (15 * 3 * 2 + 3 + 1));
  }
}

TEST_F(Replays, OfAnotherRunAreRefused) {
  JobOptions options = three_workers(UpdateMode::kAsync);
  options.record = folder_;
  (void)hurry(options);
  const uint64_t tables = two_tables().fingerprint();
  const auto open = [&](const OrderOf& of) {
    return error_text<ConfigError>([&] { const OrderReplay replay(folder_, of); });
  };
  EXPECT_THAT(open({.partition = 0, .partitions = 2, .workers = 2, .tables = tables}),
              HasSubstr("is no record of a run of these tables with 2 workers"));
  EXPECT_THAT(open({.partition = 0, .partitions = 2, .workers = 3, .tables = 1}),
              HasSubstr("is no record"));
  EXPECT_THAT(open({.partition = 0, .partitions = 3, .workers = 3, .tables = tables}),
              HasSubstr("was recorded with 2 servers, and this job has 3: start it with 2"));
  std::filesystem::remove(folder_ + "/order-1-of-2.bin");
  EXPECT_THAT(open({.partition = 1, .partitions = 2, .workers = 3, .tables = tables}),
              HasSubstr("order-1-of-2.bin is not there"));
  // A worker that does something else is told so, and not left waiting.
  OrderReplay replay(folder_, {.partition = 0, .partitions = 2, .workers = 3, .tables = tables});
  replay.check({.kind = Kind::kPull, .worker = 1, .number = 0});
  EXPECT_THAT(error_text<UsageError>(
                  [&] { replay.check({.kind = Kind::kPull, .worker = 1, .number = 2}); }),
              HasSubstr("pull 2 of worker 1 comes where push 0 of worker 1 was recorded"));
}

TEST_F(Replays, WhatAWorkerHasUnderWayMayComeInAnyOrder) {
  OrderReplay replay = recorded(1,
                                {{.kind = Kind::kPull, .number = 1},
                                 {.kind = Kind::kPull, .number = 0},
                                 {.kind = Kind::kPush, .number = 0},
                                 {.kind = Kind::kPull, .number = 2},
                                 {.kind = Kind::kPush, .number = 1},
                                 {.kind = Kind::kPull, .number = 3}});
  replay.check({.kind = Kind::kPull, .number = 0});
  replay.check({.kind = Kind::kPull, .number = 1});
  EXPECT_THAT(
      test::error_text<UsageError>([&] { replay.check({.kind = Kind::kPush, .number = 3}); }),
      HasSubstr("push 3 of worker 0 comes where push 0 of worker 0 was recorded"));
  EXPECT_THROW(replay.check({.kind = Kind::kPull, .number = 1}), UsageError) << "it came before";
  EXPECT_THROW(replay.check({.kind = Kind::kPull, .number = 3}), UsageError) << "two pushes ahead";
  replay.check({.kind = Kind::kPull, .number = 2});
  replay.check({.kind = Kind::kPush, .number = 0});
}

TEST_F(Replays, NoPullOvertakesUpkeep) {
  OrderReplay replay = recorded(2,
                                {{.kind = Kind::kUpkeep, .worker = 0},
                                 {.kind = Kind::kPull, .worker = 1},
                                 {.kind = Kind::kUpkeep, .worker = 0}});
  EXPECT_FALSE(replay.is_next({.kind = Kind::kPull, .worker = 1}));
  replay.take({.kind = Kind::kUpkeep, .worker = 0});
  EXPECT_FALSE(replay.is_next({.kind = Kind::kUpkeep, .worker = 0}));
  replay.take({.kind = Kind::kPull, .worker = 1});
  EXPECT_THAT(error_text<UsageError>([&] { replay.check({.kind = Kind::kPush, .worker = 0}); }),
              HasSubstr("push 0 of worker 0 comes where upkeep before push 0 of worker 0"));
}

TEST_F(Replays, PullsBetweenTwoPushesComeInAnyOrder) {
  OrderReplay replay = recorded(2,
                                {{.kind = Kind::kPull, .worker = 0},
                                 {.kind = Kind::kPull, .worker = 1},
                                 {.kind = Kind::kPush, .worker = 1},
                                 {.kind = Kind::kPush, .worker = 0}});
  EXPECT_FALSE(replay.is_next({.kind = Kind::kPush, .worker = 1}));
  EXPECT_TRUE(replay.is_next({.kind = Kind::kPull, .worker = 1}));
  replay.take({.kind = Kind::kPull, .worker = 1});
  EXPECT_FALSE(replay.is_next({.kind = Kind::kPush, .worker = 1})) << "worker 0 has not pulled";
  replay.take({.kind = Kind::kPull, .worker = 0});
  EXPECT_FALSE(replay.is_next({.kind = Kind::kPush, .worker = 0}));
  replay.take({.kind = Kind::kPush, .worker = 1});
  EXPECT_TRUE(replay.is_next({.kind = Kind::kPush, .worker = 0}));
  EXPECT_FALSE(replay.is_over());
  replay.take({.kind = Kind::kPush, .worker = 0});
  EXPECT_TRUE(replay.is_over());
}

}  // namespace
}  // namespace argosy::ps
