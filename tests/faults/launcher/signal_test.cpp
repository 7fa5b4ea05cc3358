// Signals to the launcher, and its own sudden death.
#include <signal.h>
#include <string.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/launch/stop_policy.h"

#include "launched.h"

namespace argosy::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const char* const kPolite =
    "trap 'echo got INT; exit 0' INT; trap 'echo got TERM; exit 0' TERM; "
    "trap 'echo got USR1' USR1; echo ready; while :; do sleep 0.01; done";
const char* const kStubborn =
    "trap '' INT TERM HUP QUIT; (sleep 1000; :) & echo ready; while :; do sleep 1; done";

TEST(LauncherSignals, InterruptIsPassedOnAndIsNoFailure) {
  Launched job(2, kPolite);
  ASSERT_TRUE(job.wait_for_output("ready", 2));
  job.signal(SIGINT);
  EXPECT_EQ(job.wait(), 130);
  EXPECT_THAT(job.out(), HasSubstr("[rank 0] got INT"));
  EXPECT_THAT(job.out(), HasSubstr("[rank 1] got INT"));
  EXPECT_THAT(job.err(), HasSubstr("[launch] received SIGINT and passed it on to the ranks"));
  EXPECT_THAT(job.err(), Not(HasSubstr("its last lines")));
  EXPECT_THAT(job.survivors(), IsEmpty());
}

/// Leaves as a training does that was told to save.
const char* const kSaves =
    "trap 'echo saved; exit 75' INT TERM USR1; echo ready; while :; do sleep 0.01; done";

TEST(LauncherSignals, RanksThatSavedAskToBeStartedAgain) {
  for (const int signal : {SIGTERM, SIGUSR1}) {
    Launched job({.args = {"--nproc_per_node=2", "--max_restarts=3", "sh", "-c", kSaves}});
    ASSERT_TRUE(job.wait_for_output("ready", 2));
    job.signal(signal);
    EXPECT_EQ(job.wait(), 75);
    EXPECT_THAT(job.err(), HasSubstr("with --resume auto); exit code 75"));
    EXPECT_THAT(job.err(), Not(HasSubstr("restart")));
    EXPECT_THAT(job.err(), Not(HasSubstr("its last lines")));
    EXPECT_THAT(job.survivors(), IsEmpty());
  }
}

TEST(LauncherSignals, AfterCtrlCItEndsAsByCtrlCThoughTheRanksSaved) {
  Launched job({.args = {"--nproc_per_node=2", "sh", "-c", kSaves}});
  ASSERT_TRUE(job.wait_for_output("ready", 2));
  job.signal(SIGINT);
  EXPECT_EQ(job.wait(), 128 + SIGINT);
  EXPECT_THAT(job.err(), HasSubstr("with --resume auto); exit code 130"));
}

/// 'T': stopped
char state_of(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t name_end = text.rfind(')');
  return name_end == std::string::npos ? '?' : text[name_end + 2];
}

bool comes_to(int pid, char state) {
  for (int i = 0; i < 500 && state_of(pid) != state; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return state_of(pid) == state;
}

TEST(LauncherSignals, CtrlZStopsTheRanksTooAndFgLetsThemGoOn) {
  // No sleep: until a child that is stopped has come to its exec, the shell that waits for that
  // (vfork) is in state D.
  Launched job(2, "trap 'echo went on' CONT; echo pid $$; while :; do :; done");
  ASSERT_TRUE(job.wait_for_output("pid ", 2));
  const int rank = std::stoi(job.out().substr(job.out().find("pid ") + 4));
  job.signal(SIGTSTP);
  EXPECT_TRUE(comes_to(job.pid(), 'T'));
  EXPECT_TRUE(comes_to(rank, 'T'));
  job.signal(SIGCONT);
  EXPECT_TRUE(job.wait_for_output("went on", 2));
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 143);
  EXPECT_THAT(job.survivors(), IsEmpty());
}

TEST(LauncherSignals, WhoIsStoppedByCtrlZDoesNotHang) {
  Launched job({.args = {"--nproc_per_node=2", "--heartbeat_timeout=2", RANK_PROGRAM},
                .env = {"HANG=abort"}});
  ASSERT_TRUE(job.wait_for_output(" joined 2 ranks", 2));
  job.signal(SIGTSTP);
  ASSERT_TRUE(comes_to(job.pid(), 'T'));
  std::this_thread::sleep_for(std::chrono::milliseconds(2200));  // longer than a rank may be silent
  job.signal(SIGCONT);
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 143);
  EXPECT_THAT(job.err(), Not(HasSubstr("has done nothing")));
}

TEST(LauncherSignals, TerminateToo) {
  Launched job(2, kPolite);
  ASSERT_TRUE(job.wait_for_output("ready", 2));
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 143);
  EXPECT_THAT(job.out(), HasSubstr("[rank 1] got TERM"));
}

TEST(LauncherSignals, WhatEndsOtherwiseThanByItIsNamed) {
  Launched job(4,
               "case $RANK in 0) trap 'exit 0' TERM;; 1) trap 'exit 3' TERM;; "
               "2) trap 'exit 143' TERM;; 3) trap 'kill -SEGV $$' TERM;; esac; "
               "echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(job.wait_for_output("ready", 4));
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 143);
  EXPECT_THAT(
      job.err(),
      HasSubstr("[launch] these ranks did not end by SIGTERM: rank 1 code 3, rank 3 SIGSEGV\n"));
}

TEST(LauncherSignals, TheSecondKillsAtOnce) {
  Launched job(2, kStubborn, {"--shutdown_timeout", "1000"});
  ASSERT_TRUE(job.wait_for_output("ready", 2));
  job.signal(SIGINT);
  ASSERT_TRUE(job.wait_for_error("a second signal kills them"));
  std::this_thread::sleep_for(launch::StopPolicy::kOneRequest);  // a user who makes up his mind
  job.signal(SIGINT);
  EXPECT_EQ(job.wait(), 130);
  EXPECT_THAT(job.err(), HasSubstr("[launch] killing the ranks at once\n"));
  EXPECT_THAT(job.survivors(), IsEmpty());
}

TEST(LauncherSignals, OneRequestMayComeAsTwoSignals) {
  Launched job(
      2, "trap 'sleep 0.2; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(job.wait_for_output("ready", 2));
  job.signal(SIGTERM);
  ASSERT_TRUE(job.wait_for_error("received SIGTERM and passed it on"));
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 143);
  EXPECT_THAT(job.out(), HasSubstr("[rank 1] saved"));
}

TEST(LauncherSignals, StubbornRanksDieAfterTheGrace) {
  Launched job(2, kStubborn, {"--shutdown_timeout", "0.2"});
  ASSERT_TRUE(job.wait_for_output("ready", 2));
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 143);
  EXPECT_THAT(job.survivors(), IsEmpty());
}

TEST(LauncherSignals, UserSignalsArePassedOn) {
  Launched job(2, kPolite);
  ASSERT_TRUE(job.wait_for_output("ready", 2));
  job.signal(SIGUSR1);
  ASSERT_TRUE(job.wait_for_output("got USR1", 2));
  job.signal(SIGTERM);
  EXPECT_EQ(job.wait(), 143);
}

TEST(LauncherSignals, EverySignalReachesTheRanks) {
  for (const int signal : {SIGUSR2, SIGHUP, SIGQUIT, SIGINT, SIGTERM}) {
    const std::string name = std::string(::sigabbrev_np(signal));
    Launched job(2,
                 "trap 'echo got " + name + "; " + (signal == SIGUSR2 ? "" : "exit 0") + "' " +
                     name + "; echo ready; while :; do sleep 0.02; done");
    ASSERT_TRUE(job.wait_for_output("ready", 2));
    job.signal(signal);
    ASSERT_TRUE(job.wait_for_output("got " + name, 2)) << name;
    if (signal == SIGUSR2) {  // does not stop the job
      job.signal(SIGTERM);
    }
    EXPECT_EQ(job.wait(), 128 + (signal == SIGUSR2 ? SIGTERM : signal)) << name;
  }
}

TEST(LauncherSignals, AHangupIsNothingUnderNohup) {
  for (const bool nohup : {true, false}) {
    Launched job({.shell = std::string(nohup ? "trap '' HUP; " : "") +
                           "exec \"$0\" launch --log_dir= sh -c 'echo ready; cat'",
                  .with_input = true});
    ASSERT_TRUE(job.wait_for_output("ready"));
    job.signal(SIGHUP);
    job.input().close();
    EXPECT_EQ(job.wait(), nohup ? 0 : 128 + SIGHUP);
  }
}

TEST(LauncherSignals, KillingTheLauncherLeavesNothing) {
  Launched job(3, kStubborn);
  ASSERT_TRUE(job.wait_for_output("ready", 3));
  job.signal(SIGKILL);
  EXPECT_THAT(job.survivors(), IsEmpty());
}

TEST(LauncherSignals, AtWhateverMomentItDies) {
  // Moments from before the first rank to well after the last: none is special to the test.
  for (const int milliseconds : {0, 3, 6, 10, 15, 20, 30, 50}) {
    Launched job(3, kStubborn);
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    job.signal(SIGKILL);
    EXPECT_THAT(job.survivors(), IsEmpty()) << milliseconds << " ms";
  }
}

}  // namespace
}  // namespace argosy::test
