// Nobody reads what the launcher writes. (Readers that go away: output_test.cpp.)
#include <signal.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/os/fd.h"

#include "launched.h"
#include "tests/support/temp_dir.h"

namespace argosy::test {
namespace {

using testing::HasSubstr;
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

/// The most memory that process `pid` has had, in MB.
int64_t peak_mb(int pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) {
      return std::stoll(line.substr(6)) / 1024;
    }
  }
  return -1;
}

constexpr int64_t kMostMb = 70;

TEST(LauncherReader, MemoryStaysBoundedWhateverARankPrints) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep freed memory, and shadows of all of it";
#endif
  // 200 MB in lines, and 200 MB without end, through a pipe that is read: nothing is kept.
  const std::string script =
      "if [ $RANK = 0 ]; then yes a line of some length | head -c 200000000; "
      "else head -c 200000000 /dev/zero; fi; echo; echo done $RANK";
  Launched job({.args = {"--nproc_per_node=2", "--log_dir=", "sh", "-c", script}});
  std::thread reading([&] {  // an own end of the pipe would need more than a test's
    while (peak_mb(job.pid()) >= 0 && state_of(job.pid()) != 'Z') {
      EXPECT_LT(peak_mb(job.pid()), kMostMb);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  EXPECT_EQ(job.wait(), 0);
  reading.join();
  EXPECT_GT(job.out().size(), 400'000'000U);
  // And where the reader pauses, the rank waits.
  Launched paused({.args = {"--log_dir=", "sh", "-c", "echo ready; cat; yes | head -c 200000000"},
                   .with_input = true});
  ASSERT_TRUE(paused.wait_for_output("ready"));
  paused.pause_reading();
  paused.input().close();
  for (int i = 0; i < 50; ++i) {
    ASSERT_LT(peak_mb(paused.pid()), kMostMb);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  paused.signal(SIGINT);
  EXPECT_EQ(paused.wait(), 130);
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

TEST(LauncherReader, TheReportNamesTheSignalThatEndsTheWait) {
  const TempDir folder;
  const std::string json = (folder.path() / "end.json").string();
  Launched job({.args = {"--json", json, "sh", "-c", "echo ready; cat; seq 50000; echo done >&2"},
                .with_input = true});
  ASSERT_TRUE(job.wait_for_output("ready"));
  job.pause_reading();
  job.input().close();
  ASSERT_TRUE(job.wait_for_error("done"));
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 143);
  EXPECT_THAT(*os::read_file(json), HasSubstr("\"interrupted_by\": \"SIGTERM\""));
}

}  // namespace
}  // namespace argosy::test
