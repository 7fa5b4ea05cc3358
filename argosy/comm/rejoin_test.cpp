/// A program that leaves its job and joins again, as `fleet.stop_worker(); fleet.init()` does, over
/// every kind of meeting place; as processes, some slower than others. Torch-free.
#include <chrono>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/comm/group_state.h"
#include "argosy/comm/init.h"
#include "argosy/comm/test_ranks.h"
#include "argosy/rendezvous/test_store_host.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;
using test::error_text;
using test::launched_ranks;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using transport::DType;
using transport::ReduceOp;
using transport::Transport;

constexpr int kRanks = 3;

int64_t sum(const Group& group, int64_t value) {
  group.state().run({.op = "all_reduce"}, {}, [&](Transport& transport, const Deadline& deadline) {
    transport.all_reduce(&value, 1, DType::kI64, ReduceOp::kSum, deadline.remaining());
  });
  return value;
}

/// Joins, works and leaves three times; in each round another rank is slow to leave.
void join_thrice(int rank, const InitOptions& options, test::SharedCounter& left) {
  for (int round = 0; round < 3; ++round) {
    Group world = init(options);
    Group pair = world.split({.color = rank / 2});
    ASSERT_EQ(sum(world, rank + round), 3 + 3 * round);
    ASSERT_EQ(sum(pair, 1), pair.size());
    if (rank == round) {
      // The others are on their way into the next round before this one is over.
      ASSERT_TRUE(left.wait_for(int64_t{kRanks - 1} * (round + 1)));
      std::this_thread::sleep_for(150ms);  // so that they get far there
    }
    pair.destroy();
    world.destroy();
    if (rank != round) {
      left.add(1);
    }
  }
}

void expect_all_ok(const std::vector<test::RankOutcome>& outcomes) {
  for (const auto& outcome : outcomes) {
    EXPECT_TRUE(outcome.ok()) << describe(outcome);
  }
}

TEST(Rejoin, OverAFile) {
  const test::TempDir folder;
  test::SharedCounter left;
  expect_all_ok(test::try_run_ranks(
      kRanks,
      [&](int rank) {
        join_thrice(rank,
                    {.init_method = "file://" + (folder.path() / "store").string(),
                     .timeout = 30s,
                     .rank = rank,
                     .world_size = kRanks},
                    left);
      },
      {.mode = test::RankMode::kProcesses, .deadline = 50s}));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Rejoin, AtTheStoreOfRankZero) {
  const test::OwnedPort owned;
  test::SharedCounter left;
  expect_all_ok(test::try_run_ranks(
      kRanks,
      [&](int rank) {
        join_thrice(rank,
                    {.init_method = "tcp://127.0.0.1:" + std::to_string(owned.port()),
                     .timeout = 30s,
                     .rank = rank,
                     .world_size = kRanks},
                    left);
      },
      {.mode = test::RankMode::kProcesses, .deadline = 50s}));
}

TEST(Rejoin, AtTheStoreOfTheLauncher) {
  test::SharedCounter left;
  expect_all_ok(launched_ranks(
      kRanks, kRanks, [&](int rank) { join_thrice(rank, {.timeout = 30s}, left); }, 50s));
}

/// Rank `stays` is still in the job when the other one of two joins again at `place`. `run_id`: as
/// the launcher sets it; "": as without.
void expect_named(const std::string& place, int stays, const std::string& run_id = "") {
  test::SharedCounter gave_up;
  expect_all_ok(test::try_run_ranks(
      2,
      [&](int rank) {
        InitOptions options{.init_method = place, .timeout = 30s, .rank = rank, .world_size = 2};
        ASSERT_EQ(::setenv("ARGOSY_RUN_ID", run_id.c_str(), 1), 0);
        Group world = init(options);
        if (rank == stays) {
          ASSERT_TRUE(gave_up.wait_for(1));
          return;
        }
        world.destroy();
        options.timeout = 700ms;
        // The last look before the deadline may be cut short by it: not always at the same point.
        for (int i = 0; i < 4; ++i) {
          EXPECT_THAT(error_text<TimeoutError>([&] { (void)init(options); }),
                      ::testing::AllOf(HasSubstr("joins again at " + place),
                                       HasSubstr("the former job is not over; still in it: rank/" +
                                                 std::to_string(stays) + ". All ranks")));
        }
        gave_up.add(1);
      },
      {.mode = test::RankMode::kProcesses, .deadline = 50s}));
}

TEST(Rejoin, NamesWhoHasNotLeftAFile) {
  const test::TempDir folder;
  expect_named("file://" + (folder.path() / "store").string(), 1);
  expect_named("file://" + (folder.path() / "run").string(), 1, "1a2b");
}

TEST(Rejoin, NamesWhoHasNotLeftTheStoreOfRankZero) {
  const test::OwnedPort owned;
  expect_named("tcp://127.0.0.1:" + std::to_string(owned.port()), 0);
}

TEST(Rejoin, SaysThatTheStoreIsGoneWhereRankZeroDoesNotComeBack) {
  const test::OwnedPort owned;
  test::SharedCounter joins_again;
  expect_all_ok(test::try_run_ranks(
      2,
      [&](int rank) {
        InitOptions options{.init_method = "tcp://127.0.0.1:" + std::to_string(owned.port()),
                            .timeout = 30s,
                            .rank = rank,
                            .world_size = 2};
        Group world = init(options);
        if (rank == 0) {
          ASSERT_TRUE(joins_again.wait_for(1));
          std::this_thread::sleep_for(150ms);  // so that rank 1 most often sees the former job
          return;
        }
        world.destroy();
        joins_again.add(1);
        options.timeout = 1s;
        EXPECT_THAT(error_text<Error>([&] { (void)init(options); }),
                    ::testing::AllOf(HasSubstr("cannot reach the store at 127.0.0.1:"),
                                     ::testing::Not(HasSubstr("is not over"))));
      },
      {.mode = test::RankMode::kProcesses, .deadline = 50s}));
}

TEST(Rejoin, IsRefusedWhileThisProcessIsStillInTheJob) {
  const test::TempDir folder;
  test::run_ranks(2,
                  [&](int rank) {
                    const InitOptions options{
                        .init_method = "file://" + (folder.path() / "store").string(),
                        .timeout = 30s,
                        .rank = rank,
                        .world_size = 2};
                    Group world = init(options);
                    const Group child = world.new_group({0, 1});
                    world.destroy();
                    EXPECT_THAT(error_text<UsageError>([&] { (void)init(options); }),
                                HasSubstr("Destroy its group, and the groups made from it"));
                    EXPECT_EQ(sum(child, 1), 2);
                  },
                  {.mode = test::RankMode::kProcesses, .deadline = 50s});
}

TEST(Rejoin, IsRefusedWhereARankDied) {
  const test::TempDir folder;
  test::SharedCounter joined;
  const auto outcomes = test::try_run_ranks(
      2,
      [&](int rank) {
        const InitOptions options{.init_method = "file://" + (folder.path() / "store").string(),
                                  .timeout = 30s,
                                  .rank = rank,
                                  .world_size = 2};
        Group world = init(options);
        if (rank == 1) {
          raise(SIGKILL);
        }
        EXPECT_THAT(error_text<CommError>([&] { sum(world, 1); }),
                    ContainsRegex("rank 1 (died|is gone)"));
        world.destroy();
        EXPECT_THAT(error_text<RendezvousError>([&] { (void)init(options); }),
                    HasSubstr("rank/1 of the former job never left it, and its folder is kept"));
      },
      {.mode = test::RankMode::kProcesses, .deadline = 50s});
  EXPECT_TRUE(outcomes[0].ok()) << describe(outcomes[0]);
}

}  // namespace
}  // namespace argosy::comm
