/// Ranks that fail between the meeting and the connection: the others must learn who it was, and
/// not wait for their deadline. As processes; torch-free.
#include <csignal>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/comm/init.h"
#include "argosy/comm/test_ranks.h"
#include "argosy/rendezvous/join.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kRanks = 4;

/// Runs init() on all ranks but the culprit, which does `fail` when it has met the others. All
/// others must name it with `text`, long before the deadline.
void expect_named(int culprit,
                  const std::string& text,
                  const std::function<void(rendezvous::Joined&)>& fail) {
  const test::TempDir folder;
  const auto start = std::chrono::steady_clock::now();
  const auto outcomes = test::try_run_ranks(
      kRanks,
      [&](int rank) {
        const std::string method = "file://" + (folder.path() / "store").string();
        if (rank == culprit) {
          auto joined = rendezvous::join({.method = method, .rank = rank, .world_size = kRanks},
                                         Deadline::after(30s));
          fail(joined);
          return;
        }
        (void)init({.init_method = method, .timeout = 40s, .rank = rank, .world_size = kRanks});
      },
      {.mode = test::RankMode::kProcesses, .deadline = 50s});
  for (const test::RankOutcome& outcome : outcomes) {
    if (outcome.rank != culprit) {
      EXPECT_EQ(outcome.error_type, "argosy::CommError") << describe(outcome);
      EXPECT_THAT(outcome.peers, ElementsAre(culprit)) << describe(outcome);
      EXPECT_THAT(outcome.error, ContainsRegex(text));
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);  // found, not waited for
}

constexpr const char* kCard = "backend auto and checked mode off\nhere";

TEST(InitFaults, ARankDiesBeforeItSaysItsSettings) {
  expect_named(2, "rank 2 is gone", [](rendezvous::Joined&) { raise(SIGKILL); });
}

TEST(InitFaults, RankZeroDiesBeforeItsVerdict) {
  expect_named(0, "rank 0 is gone", [](rendezvous::Joined&) { raise(SIGKILL); });
}

TEST(InitFaults, RankZeroFailsBeforeItsVerdict) {
  expect_named(0, "rank 0 left", [](rendezvous::Joined& joined) {
    joined.presence->leave("out of memory");
  });
}

TEST(InitFaults, ARankDiesBeforeItConnects) {
  expect_named(2, "rank 2 (died|is gone)", [](rendezvous::Joined& joined) {
    joined.store->set("comm/card/2", kCard, Deadline::after(30s));
    (void)joined.store->get("comm/verdict", Deadline::after(30s));
    raise(SIGKILL);
  });
}

TEST(InitFaults, ARankThatCannotConnectSaysWhy) {
  const test::TempDir folder;
  const auto outcomes = test::try_run_ranks(
      3,
      [&](int rank) {
        if (rank == 1) {
          setenv("ARGOSY_IFNAME", "nosuch0", 1);  // NOLINT(concurrency-mt-unsafe)
        }
        (void)init({.init_method = "file://" + (folder.path() / "store").string(),
                    .backend = "gloo",
                    .timeout = 40s,
                    .rank = rank,
                    .world_size = 3});
      },
      {.mode = test::RankMode::kProcesses, .deadline = 30s});
  EXPECT_EQ(outcomes[1].error_type, "argosy::ConfigError") << describe(outcomes[1]);
  for (const int rank : {0, 2}) {
    const auto& outcome = outcomes[static_cast<size_t>(rank)];
    EXPECT_EQ(outcome.error_type, "argosy::CommError") << describe(outcome);
    EXPECT_THAT(outcome.peers, ElementsAre(1)) << describe(outcome);
    EXPECT_THAT(outcome.error, HasSubstr("nosuch0")) << describe(outcome);
  }
}

TEST(InitFaults, ARankDiesBeforeItComesToASubGroup) {
  const test::TempDir folder;
  const auto outcomes = test::try_run_ranks(
      kRanks,
      [&](int rank) {
        const Group world = init({.init_method = "file://" + (folder.path() / "store").string(),
                                  .timeout = 40s,
                                  .rank = rank,
                                  .world_size = kRanks});
        if (rank == 3) {
          raise(SIGKILL);
        }
        if (rank != 0) {
          (void)world.new_group({1, 3, 2});
        }
      },
      {.mode = test::RankMode::kProcesses, .deadline = 30s});
  EXPECT_EQ(outcomes[3].signal, SIGKILL);
  for (const int rank : {1, 2}) {
    const auto& outcome = outcomes[static_cast<size_t>(rank)];
    EXPECT_EQ(outcome.error_type, "argosy::CommError") << describe(outcome);
    EXPECT_THAT(outcome.peers, ElementsAre(1)) << describe(outcome);
    EXPECT_THAT(outcome.error, ContainsRegex("rank 1 \\(world rank 3\\) (died|is gone)"));
  }
}

}  // namespace
}  // namespace argosy::comm
