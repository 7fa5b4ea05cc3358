// A rank fails: who is named, what the others get, what is left.
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/os/fd.h"

#include "launched.h"
#include "tests/support/temp_dir.h"
#include <nlohmann/json.hpp>

namespace argosy::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Five ranks that wait for ever, but rank 3, which waits for the word.
std::string until_rank_3(const std::string& does) {
  return "echo ready; if [ $RANK = 3 ]; then for i in $(seq 30); do echo line $i; done; "
         "echo last words >&2; sleep 0.05; " +
         does + "; fi; sleep 1000";
}

TEST(LauncherFailure, TheFirstRankToFailIsNamedWithItsLastLines) {
  Launched job(5, until_rank_3("exit 9"));
  EXPECT_EQ(job.wait(), 9);
  EXPECT_THAT(job.err(),
              ContainsRegex("\\[launch\\] rank 3 \\(pid [0-9]+\\) exited with code 9 "
                            "after [0-9.]+ s; its last lines:\n"));
  EXPECT_THAT(job.err(), HasSubstr("  | line 30\n"));
  EXPECT_THAT(job.err(), HasSubstr("  | last words\n"));
  EXPECT_THAT(job.err(), Not(HasSubstr("  | line 10\n")));  // twenty are enough
  EXPECT_THAT(job.err(), HasSubstr("stopped by the launcher: ranks 0-2, 4\n"));
  EXPECT_THAT(job.survivors(), IsEmpty());
}

TEST(LauncherFailure, ASignalIsSaidInWords) {
  Launched job(5, until_rank_3("kill -KILL $$"));
  EXPECT_EQ(job.wait(), 137);
  EXPECT_THAT(job.err(),
              ContainsRegex("rank 3 \\(pid [0-9]+\\) was killed by SIGKILL \\(.*"
                            "out-of-memory killer.*\\) after"));
  EXPECT_THAT(job.survivors(), IsEmpty());
}

TEST(LauncherFailure, OneThatDiesUnderADebuggerIsNotMissed) {
  Launched job(2, "echo pid $$; exec sleep 1000");
  ASSERT_TRUE(job.wait_for_output("pid ", 2));
  const pid_t rank = std::stoi(lines_of(job.out(), "[rank 0] pid ").front());
  if (::ptrace(PTRACE_SEIZE, rank, nullptr, nullptr) != 0) {
    GTEST_SKIP() << "no process may be traced here";
  }
  ::kill(rank, SIGKILL);
  siginfo_t seen{};
  // The launcher is woken by the end and can learn nothing before the debugger has looked.
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(rank), &seen, WEXITED | WNOWAIT | __WALL), 0);
  while (state_of(job.pid()) != 'S') {
    std::this_thread::yield();
  }
  ASSERT_EQ(::waitpid(rank, nullptr, __WALL), rank);
  EXPECT_EQ(job.wait(), 137);
  EXPECT_THAT(job.err(), HasSubstr("rank 0 (pid "));
  EXPECT_THAT(job.survivors(), IsEmpty());
}

TEST(LauncherFailure, VictimsAreNotTheCause) {
  // The others fail in consequence, as ranks do whose peer is gone: at once, with code 1.
  Launched job(5,
               "echo $$ >/dev/null; if [ $RANK = 3 ]; then sleep 0.05; kill -SEGV $$; fi; "
               "trap 'exit 1' TERM; while :; do sleep 0.01; done");
  EXPECT_EQ(job.wait(), 139);
  EXPECT_THAT(job.err(), ContainsRegex("rank 3 .*SIGSEGV \\(invalid memory access\\)"));
  EXPECT_THAT(job.err(), HasSubstr("exit code 139"));
}

/// Two ranks that write one line and wait until both have; then rank 0 does one thing and rank 1
/// another, while the launcher does not look.
struct Unseen {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                       ("argosy-launcher-unseen-" + std::to_string(::getpid()));
  explicit Unseen(const std::string& first, const std::string& second) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    job.emplace(2,
                "cd " + folder.string() +
                    "; echo warning: no GPU >&2; until [ -e go ]; do sleep 0.01; done; "
                    "if [ $RANK = 0 ]; then " +
                    first + "; else " + second + "; fi");
    for (const char* rank : {"[rank 0] ", "[rank 1] "}) {
      job->wait_for_error(std::string(rank) + "warning: no GPU\n");
    }
    job->signal(SIGSTOP);
    EXPECT_TRUE(os::open_file((folder / "go").string(), O_WRONLY | O_CREAT).ok());
    job->wait_for_zombies(2);
    job->signal(SIGCONT);
  }
  ~Unseen() { std::filesystem::remove_all(folder); }
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;
  Unseen(Unseen&&) = delete;
  Unseen& operator=(Unseen&&) = delete;

  std::optional<Launched> job{};
};

TEST(LauncherFailure, WhatAllRanksSayIsNotRepeated) {
  Unseen run("exit 3", "exit 3");
  EXPECT_EQ(run.job->wait(), 3);
  EXPECT_THAT(run.job->err(),
              HasSubstr("; all 2 ranks ended with the same words, which stand above.\n"));
  EXPECT_THAT(run.job->err(), Not(HasSubstr("  | ")));
}

TEST(LauncherFailure, RanksThatFailInOneMomentAreNotSaidToBeStopped) {
  Launched job(3, "sleep 0.0$((RANK * 2)); echo no such folder >&2; exit 3");
  EXPECT_EQ(job.wait(), 3);
  EXPECT_THAT(job.err(), HasSubstr("all 3 ranks ended with the same words"));
  EXPECT_THAT(job.err(), Not(HasSubstr("stopped by the launcher")));
  Launched early(2, "[ $RANK = 1 ] && { sleep 0.03; exit 0; }; kill -ABRT $$");
  EXPECT_EQ(early.wait(), 134);
  EXPECT_THAT(early.err(), HasSubstr("ended well: rank 1"));
}

TEST(LauncherFailure, WhatAllRanksSayIsNoStoryWhenOneOfThemEndsWell) {
  Unseen run("exit 7", "exit 0");
  EXPECT_EQ(run.job->wait(), 7);
  EXPECT_THAT(run.job->err(), HasSubstr("; its last lines:\n  | warning: no GPU\n"));
  EXPECT_THAT(run.job->err(), HasSubstr("ended well: rank 1\n"));
}

TEST(LauncherFailure, WhatAllRanksSayIsNoStoryWhenTheOthersAreStopped) {
  Launched job({.args = {"--nproc_per_node=3",
                         "sh",
                         "-c",
                         "echo warning: no GPU >&2; [ $RANK = 0 ] && { cat; kill -KILL $$; }; "
                         "sleep 1000"},
                .with_input = true});
  for (const char* rank : {"[rank 0] ", "[rank 1] ", "[rank 2] "}) {
    ASSERT_TRUE(job.wait_for_error(std::string(rank) + "warning: no GPU\n"));
  }
  job.input().close();
  EXPECT_EQ(job.wait(), 137);
  EXPECT_THAT(job.err(), HasSubstr("; its last lines:\n  | warning: no GPU\n"));
  EXPECT_THAT(job.err(), HasSubstr("stopped by the launcher: ranks 1, 2\n"));
  EXPECT_THAT(job.survivors(), IsEmpty());
}

TEST(LauncherFailure, WhatARankSaysOfItselfIsRead) {
  const TempDir folder;
  Launched job(
      {.shell =
           "cd " + folder.path().string() +
           "; exec \"$0\" launch --log_dir logs --json end.json sh -c 'cd /; echo "
           "\"{\\\"message\\\": \\\"shapes differ\\\"}\" > $TORCHELASTIC_ERROR_FILE; exit 6'"});
  EXPECT_EQ(job.wait(), 6);
  EXPECT_THAT(job.err(), HasSubstr("[launch] it reported shapes differ (in logs/"));
  const auto report = nlohmann::json::parse(*os::read_file(folder.path() / "end.json"));
  EXPECT_EQ(report["first_failure"]["error"]["message"], "shapes differ");
}

TEST(LauncherFailure, IsWrittenForPrograms) {
  const TempDir folder;
  const std::string path = (folder.path() / "end.json").string();
  Launched job(2, "[ $RANK = 1 ] && { echo why; exit 5; }; sleep 1000", {"--json", path});
  EXPECT_EQ(job.wait(), 5);
  const nlohmann::json report = nlohmann::json::parse(*os::read_file(path));
  EXPECT_EQ(report["exit_code"], 5);
  EXPECT_EQ(report["first_failure"]["rank"], 1);
  EXPECT_EQ(report["first_failure"]["last_lines"][0], "why");
  EXPECT_EQ(report["first_failure"]["others"][0]["rank"], 0);
  Launched well(1, "true", {"--json", "/proc/nowhere/end.json"});
  EXPECT_EQ(well.wait(), 2);
  EXPECT_THAT(well.err(), HasSubstr("[launch.json] /proc/nowhere/end.json is in no folder"));
}

TEST(LauncherFailure, EndingWellEarlyIsNoFailure) {
  Launched job(3, "[ $RANK = 1 ] && exit 0; sleep 0.05; echo finished");
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(lines_of(job.out(), "[rank 2] ").size(), 1U);
  EXPECT_EQ(job.err(), "");
}

TEST(LauncherFailure, RanksThatIgnoreSigtermAreKilledAfterTheGrace) {
  Launched job(3,
               "trap '' TERM; echo ready; [ $RANK = 1 ] && { sleep 0.05; exit 5; }; "
               "while :; do sleep 1; done",
               {"--shutdown_timeout", "0.4"});
  EXPECT_EQ(job.wait(), 5);
  EXPECT_THAT(job.err(), HasSubstr("; stopping the others\n"));  // said before the wait
  EXPECT_THAT(job.err(), HasSubstr("ranks 0, 2 did not stop within 0.4 s; sending SIGKILL"));
  EXPECT_THAT(job.survivors(), IsEmpty());
}

TEST(LauncherFailure, RanksMayUseTheirGrace) {
  Launched job({.args = {"--nproc_per_node=2",
                         "sh",
                         "-c",
                         "[ $RANK = 0 ] && { cat; exit 5; }; trap 'echo saved; exit 0' TERM; "
                         "echo ready; while :; do sleep 0.01; done"},
                .with_input = true});
  ASSERT_TRUE(job.wait_for_output("ready"));
  job.input().close();
  EXPECT_EQ(job.wait(), 5);
  EXPECT_THAT(job.out(), HasSubstr("[rank 1] saved"));
  EXPECT_THAT(job.err(), HasSubstr("ended well: rank 1\n"));
}

TEST(LauncherFailure, OfAnUncaughtExceptionIsHeadedByItsTypeAndText) {
  for (const char* how : {"with_handler", "without"}) {
    SCOPED_TRACE(how);
    Launched job({.args = {"--nproc_per_node=2", "--log_dir=", RANK_PROGRAM},
                  .env = {std::string("THROW=") + how}});
    EXPECT_EQ(job.wait(), 134);
    EXPECT_THAT(job.err(),
                ContainsRegex("\\[launch\\] rank 1 \\(pid [0-9]+\\) threw std::runtime_error: my "
                              "file is missing, and was ended by SIGABRT after [0-9.]+ s; "));
  }
}

}  // namespace
}  // namespace argosy::test
