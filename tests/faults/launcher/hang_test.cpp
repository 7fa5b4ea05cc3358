// --heartbeat_timeout: a rank that stands still while the others wait for it.
#include <signal.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launched.h"

namespace argosy::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(LauncherHang, IsEndedAndNamedWithItsLastOperation) {
  Launched job(
      {.args = {"--nproc_per_node=3", "--log_dir=", "--heartbeat_timeout=0.3", RANK_PROGRAM},
       .env = {"HANG=abort"}});
  EXPECT_EQ(job.wait(), 134);
  EXPECT_THAT(job.err(), ContainsRegex("rank 1 \\(pid [0-9]+\\) has done nothing for 0\\.[3-9]"));
  EXPECT_THAT(job.err(),
              ContainsRegex("rank 1 \\(pid [0-9]+\\) stood still for 0\\.[0-9]+ s \\(last: "
                            "all_reduce \\(seq 5\\) of world\\) and was ended by SIGABRT"));
  EXPECT_THAT(job.err(), HasSubstr("stopped by the launcher: ranks 0, 2\n"));
  EXPECT_THAT(job.survivors(), IsEmpty());
}

TEST(LauncherHang, BehindAShellIsEndedToo) {
  Launched job(2,
               std::string(RANK_PROGRAM) + "; exit $?",
               {"--log_dir=", "--heartbeat_timeout=0.3", "--env=HANG=abort"});
  EXPECT_EQ(job.wait(), 134);
  EXPECT_THAT(job.err(), HasSubstr("stood still for 0."));
}

TEST(LauncherHang, ThatIgnoresTheSignalIsKilled) {
  Launched job({.args = {"--nproc_per_node=2",
                         "--log_dir=",
                         "--heartbeat_timeout=0.3",
                         "--shutdown_timeout=0.2",
                         RANK_PROGRAM},
                .env = {"HANG=ignore"}});
  EXPECT_EQ(job.wait(), 137);
  EXPECT_THAT(job.err(), HasSubstr("and was ended by SIGKILL"));
}

TEST(LauncherHang, IsNobodysBusinessUnlessAskedFor) {
  Launched job({.args = {"--nproc_per_node=2", "--log_dir=", RANK_PROGRAM}, .env = {"HANG=abort"}});
  ASSERT_TRUE(job.wait_for_output(" joined 2 ranks", 2));
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 143);
  EXPECT_THAT(job.err(), Not(HasSubstr("stood still")));
}

TEST(LauncherHang, OfAProgramWithoutTheLibraryCannotBeSeen) {
  Launched job(2, "sleep 0.8; echo done", {"--log_dir=", "--heartbeat_timeout=0.2"});
  EXPECT_EQ(job.wait(), 0);
}

}  // namespace
}  // namespace argosy::test
