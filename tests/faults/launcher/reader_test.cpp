// Nobody reads what the launcher writes. (Readers that go away: output_test.cpp.)
#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launched.h"

namespace argosy::test {
namespace {

using testing::IsEmpty;

TEST(LauncherReader, OneSignalEndsAJobWhoseReaderPauses) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Launched job({.args = {"sh", "-c", "echo ready; cat; seq 50000; echo written >&2; sleep 1000"},
                  .with_input = true});
    ASSERT_TRUE(job.wait_for_output("ready"));
    job.pause_reading();
    job.input().close();
    ASSERT_TRUE(job.wait_for_error("written"));
    job.signal(signal);
    EXPECT_EQ(job.wait(), 128 + signal);
    EXPECT_THAT(job.survivors(), IsEmpty());
  }
}

TEST(LauncherReader, ASignalEndsTheWaitForAReaderAfterTheJob) {
  Launched job({.args = {"sh", "-c", "echo ready; cat; seq 50000; exit 3"}, .with_input = true});
  ASSERT_TRUE(job.wait_for_output("ready"));
  job.pause_reading();
  job.input().close();
  ASSERT_TRUE(job.wait_for_error("[launch] exit code 3"));
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 3);
}

}  // namespace
}  // namespace argosy::test
