/// How init() meets, and what it says when it cannot; as processes over file://. Torch-free.
#include "argosy/comm/init.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/comm/test_ranks.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;
using test::error_text;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<test::RankOutcome> init_on(int n, const std::function<InitOptions(int)>& options) {
  const test::TempDir folder;
  return test::try_run_ranks(n,
                             [&](int rank) {
                               InitOptions mine = options(rank);
                               mine.init_method = "file://" + (folder.path() / "store").string();
                               mine.rank = rank;
                               const Group world = init(mine);
                               EXPECT_EQ(world.rank(), rank);
                               EXPECT_EQ(world.name(), "world");
                             },
                             {.mode = test::RankMode::kProcesses, .deadline = 40s});
}

TEST(Init, MeetsOverAFile) {
  for (const auto& outcome :
       init_on(3, [](int) { return InitOptions{.timeout = 30s, .world_size = 3}; })) {
    EXPECT_TRUE(outcome.ok()) << describe(outcome);
  }
}

TEST(Init, NamesTheMissingRanks) {
  for (const auto& outcome :
       init_on(2, [](int) { return InitOptions{.timeout = 500ms, .world_size = 4}; })) {
    EXPECT_EQ(outcome.error_type, "argosy::TimeoutError") << describe(outcome);
    EXPECT_THAT(outcome.peers, ElementsAre(2, 3)) << describe(outcome);
  }
}

TEST(Init, EveryRankLearnsWhoChoseOtherSettings) {
  for (const auto& outcome : init_on(3, [](int rank) {
         return InitOptions{.timeout = 30s, .world_size = 3, .checked = rank == 2};
       })) {
    EXPECT_EQ(outcome.error_type, "argosy::ConfigError") << describe(outcome);
    EXPECT_THAT(outcome.error,
                AllOf(HasSubstr("rank 2 has backend auto and checked mode on"),
                      HasSubstr("rank 0 has backend auto and checked mode off")));
  }
}

TEST(Init, RefusesWhatDoesNotExistBeforeAnybodyWaits) {
  for (const char* const backend :
       {"glo", "", "cpu:nccl", "cuda:mpi", "cpu:gloo,", "cpu:gloo;cuda:nccl"}) {
    EXPECT_THAT(
        error_text<UsageError>([&] { (void)init({.backend = backend}); }),
        HasSubstr("does not exist: expected auto, shm, hierarchical, gloo, in_process, nccl"))
        << backend;
  }
  EXPECT_THAT(error_text<UsageError>([] { (void)init({.backend = "in_process"}); }),
              HasSubstr("joins threads, not processes"));
  EXPECT_THAT(error_text<UsageError>([] { (void)init({.timeout = 0ms}); }),
              HasSubstr("timeout must be positive"));
}

TEST(Connect, ChecksRankAndStore) {
  EXPECT_THAT(error_text<UsageError>([] { (void)connect({.rank = 2, .size = 2}); }),
              HasSubstr("rank 2 does not fit a group of 2"));
  EXPECT_THAT(error_text<UsageError>([] { (void)connect({.rank = 0, .size = 2}); }),
              HasSubstr("needs a store to meet in"));
  const Group alone = connect({});
  EXPECT_EQ(alone.size(), 1);
}

}  // namespace
}  // namespace argosy::comm
