#include "tests/support/run_ranks.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/support/temp_dir.h"

namespace argosy::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RunRanks : public ::testing::TestWithParam<RankMode> {};

TEST_P(RunRanks, GivesEachRankItsNumber) {
  run_ranks(
      3,
      [](int rank) { EXPECT_THAT(rank, ::testing::AllOf(::testing::Ge(0), ::testing::Lt(3))); },
      {.mode = GetParam()});
}

TEST_P(RunRanks, CollectsExceptionsByTypeTextAndPeers) {
  const auto outcomes = try_run_ranks(3,
                                      [](int rank) {
                                        if (rank == 1) {
                                          throw TimeoutError("x.y", "late", {.peers = {0, 2}});
                                        }
                                        if (rank == 2) {
                                          throw std::out_of_range("far");
                                        }
                                      },
                                      {.mode = GetParam()});
  EXPECT_TRUE(outcomes[0].ok());
  EXPECT_EQ(outcomes[1].error_type, "argosy::TimeoutError");
  EXPECT_EQ(outcomes[1].error, "[x.y] late");
  EXPECT_THAT(outcomes[1].peers, ElementsAre(0, 2));
  EXPECT_EQ(outcomes[2].error_type, "std::out_of_range");
  EXPECT_THAT(outcomes[2].peers, ElementsAre());
}

TEST_P(RunRanks, ThrowsNamingTheRankThatFailed) {
  try {
    run_ranks(2,
              [](int rank) {
                if (rank == 1) {
                  throw std::runtime_error("boom");
                }
              },
              {.mode = GetParam()});
    FAIL() << "must throw";
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("rank 1: std::runtime_error: boom"));
  }
}

INSTANTIATE_TEST_SUITE_P(Modes,
                         RunRanks,
                         ::testing::Values(RankMode::kThreads, RankMode::kProcesses),
                         [](const auto& info) {
                           return info.param == RankMode::kThreads ? "Threads" : "Processes";
                         });

TEST(RunRanksProcesses, TellsSignalsExitCodesAndOutput) {
  const auto outcomes = try_run_ranks(3,
                                      [](int rank) {
                                        std::printf("I am %d\n", rank);
                                        std::fflush(stdout);
                                        if (rank == 0) {
                                          ::raise(SIGKILL);
                                        }
                                        if (rank == 1) {
                                          ::_exit(7);
                                        }
                                      },
                                      {.mode = RankMode::kProcesses});
  EXPECT_EQ(outcomes[0].signal, SIGKILL);
  EXPECT_EQ(outcomes[1].exit_code, 7);
  EXPECT_TRUE(outcomes[2].ok());
  EXPECT_EQ(outcomes[2].output, "I am 2\n");
}

TEST(RunRanksProcesses, AnEndBeforeTheFunctionReturnsIsAFailure) {
  const auto outcomes = try_run_ranks(2,
                                      [](int rank) {
                                        if (rank == 1) {
                                          ::_exit(0);
                                        }
                                      },
                                      {.mode = RankMode::kProcesses});
  EXPECT_TRUE(outcomes[0].ok());
  EXPECT_FALSE(outcomes[1].ok());
  EXPECT_THAT(describe(outcomes[1]), HasSubstr("before its function returned"));
}

TEST(RunRanksProcesses, AFailedExpectationOfARankCounts) {
  const auto outcomes =
      try_run_ranks(2, [](int rank) { EXPECT_EQ(rank, 0); }, {.mode = RankMode::kProcesses});
  EXPECT_TRUE(outcomes[0].ok());
  EXPECT_TRUE(outcomes[1].expectation_failed);
  EXPECT_THAT(outcomes[1].output, HasSubstr("Expected equality"));
}

TEST(RunRanksProcesses, KillsWhoHangsAtTheDeadline) {
  const auto outcomes =
      try_run_ranks(2,
                    [](int rank) {
                      if (rank == 1) {
                        ::pause();
                      }
                    },
                    {.mode = RankMode::kProcesses, .deadline = milliseconds(300)});
  EXPECT_TRUE(outcomes[0].ok());
  EXPECT_TRUE(outcomes[1].timed_out);
  EXPECT_FALSE(outcomes[1].ok());
}

TEST(RunRanksThreadsDeathTest, AbortsNamingWhoHangs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run_ranks(2,
                         [](int rank) {
                           if (rank == 1) {
                             ::pause();
                           }
                         },
                         {.deadline = milliseconds(300)}),
               "still running: 1");
}

TEST(TempDir, GoesWithTheObjectButNotWithARanksCopy) {
  std::filesystem::path path;
  {
    const TempDir dir;
    path = dir.path();
    run_ranks(
        1, [&](int) { const_cast<TempDir&>(dir).~TempDir(); }, {.mode = RankMode::kProcesses});
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace argosy::test
