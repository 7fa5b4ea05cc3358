// All ranks start again after a failure.
#include <signal.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launched.h"
#include "tests/support/temp_dir.h"

namespace argosy::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

TEST(LauncherRestart, RanksKeepTheirNumbersAndKnowTheCount) {
  const TempDir folder;  // rank 1 fails when the others have said who they are
  Launched job(3,
               "cd " + folder.path().string() +
                   "; echo $RANK $LOCAL_RANK $TORCHELASTIC_RESTART_COUNT $ARGOSY_RESTART_COUNT of "
                   "$TORCHELASTIC_MAX_RESTARTS; [ $ARGOSY_RESTART_COUNT = 0 ] || exit 0; "
                   "touch said$RANK; [ $RANK != 1 ] && sleep 1000; "
                   "while ! [ -e said0 -a -e said2 ]; do sleep 0.01; done; exit 5",
               {"--max_restarts", "3"});
  EXPECT_EQ(job.wait(), 0);
  for (int rank = 0; rank < 3; ++rank) {
    const std::string number = std::to_string(rank);
    const std::string prefix = "[rank " + number + "] " + number + " " + number + " ";
    EXPECT_THAT(lines_of(job.out(), prefix), UnorderedElementsAre("0 0 of 3", "1 1 of 3"));
  }
  EXPECT_THAT(job.err(), HasSubstr("rank 1 (pid "));
  EXPECT_THAT(job.err(), HasSubstr("[launch] restart 1 of 3 now. See"));
  EXPECT_THAT(job.survivors(), IsEmpty());
}

TEST(LauncherRestart, GivesUpWithTheLastFailuresCode) {
  const TempDir logs;
  Launched job(2,
               "echo life $ARGOSY_RESTART_COUNT; [ $RANK = 0 ] && exit $((7 + "
               "ARGOSY_RESTART_COUNT)); sleep 1000",
               {"--max_restarts=1", "--log_dir", logs.path().string()});
  EXPECT_EQ(job.wait(), 8);
  EXPECT_THAT(job.err(), HasSubstr("[launch] exit code 8 after 1 restart. See"));
  EXPECT_THAT(job.err(), HasSubstr("/rank0.log\n"));  // each life has a file of its own
  EXPECT_THAT(job.err(), HasSubstr("/rank0.restart1.log\n"));
  EXPECT_THAT(job.survivors(), IsEmpty());
}

TEST(LauncherRestart, LeftoversOfTheFormerLifeAreGoneFirst) {
  const TempDir folder;
  Launched job(
      1,
      "cd " + folder.path().string() +
          "; [ $ARGOSY_RESTART_COUNT = 1 ] && { [ -e /proc/$(cat pid) ] && exit 9; exit 0; }; "
          "setsid sleep 1000 & echo $! >pid; exit 1",
      {"--max_restarts=1", "--log_dir", "", "--env", "UNUSED=1"});
  EXPECT_EQ(job.wait(), 0) << job.err();
}

TEST(LauncherRestart, UsageErrorsAreNotTriedAgain) {
  Launched job(2, "exit 2", {"--max_restarts", "3"});
  EXPECT_EQ(job.wait(), 2);
  EXPECT_THAT(job.err(), HasSubstr("[launch] exit code 2, not restarted: it would come again"));
  Launched missing({.args = {"--max_restarts", "3", "./no-such-program"}});
  EXPECT_EQ(missing.wait(), 127);
  EXPECT_THAT(missing.err(), Not(HasSubstr("restart 1")));
}

TEST(LauncherRestart, ASignalEndsTheWait) {
  Launched job(1, "exit 1", {"--max_restarts", "9"});
  ASSERT_TRUE(job.wait_for_error("restart 3 of 9 in 2.0 s"));
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 143);
  EXPECT_THAT(job.err(), HasSubstr("[launch] stopped by SIGTERM; exit code 143\n"));
  EXPECT_THAT(job.err(), Not(HasSubstr("restart 4")));
}

TEST(LauncherRestart, ASignalToAFailingJobIsNoReasonForOne) {
  Launched job(
      2, "trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done", {"--max_restarts", "3"});
  ASSERT_TRUE(job.wait_for_output("ready", 2));
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 143);
  EXPECT_THAT(job.err(), Not(HasSubstr("restart 1")));
}

}  // namespace
}  // namespace argosy::test
