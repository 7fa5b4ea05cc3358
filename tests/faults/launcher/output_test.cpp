// What becomes of what the ranks print.
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/deadline.h"
#include "argosy/os/fd.h"

#include "launched.h"
#include "tests/support/temp_dir.h"

namespace argosy::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(LauncherOutput, LinesOfEightRanksStayWholeAndInOrder) {
  constexpr int kLines = 10'000;
  const std::string tail(60, 'x');
  Launched job(8,
               "seq -f \"%g of $RANK " + tail +
                   "\" 10000 >&2 & "
                   "seq -f \"%g of $RANK " +
                   tail + "\" 10000; wait");
  ASSERT_EQ(job.wait(), 0);
  for (const std::string* text : {&job.out(), &job.err()}) {
    size_t lines = 0;
    for (int rank = 0; rank < 8; ++rank) {
      const std::string number = std::to_string(rank);
      const std::vector<std::string> got = lines_of(*text, "[rank " + number + "] ");
      ASSERT_EQ(got.size(), static_cast<size_t>(kLines));
      for (int i = 0; i < kLines; ++i) {
        ASSERT_EQ(got[static_cast<size_t>(i)],
                  std::to_string(i + 1) + " of " + number + " " + tail);
      }
      lines += got.size();
    }
    EXPECT_EQ(static_cast<size_t>(std::ranges::count(*text, '\n')), lines);  // and nothing else
  }
}

TEST(LauncherOutput, OddBytesAndUnfinishedLines) {
  Launched job(1, "printf 'a\\000\\377\\r\\nlast'");
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(job.out(), std::string("[rank 0] a\0\xff\r\n[rank 0] last\n", 28));
}

TEST(LauncherOutput, AFileHasTheStartTableBeforeTheRanksSayAWord) {
  const TempDir folder;
  const std::string log = (folder.path() / "log").string();
  const std::string go = (folder.path() / "go").string();
  Launched job({.shell = "exec \"$0\" launch --log_dir '' sh -c 'until [ -e " + go +
                         " ]; do sleep 0.05; done' >" + log + " 2>&1"});
  const auto has_table = [&] {
    const Result<std::string> text = os::read_file(log);
    return text.ok() && text->find("| ranks ") != std::string::npos;
  };
  for (const Deadline patience = Deadline::after(std::chrono::seconds(60));
       !has_table() && !patience.expired();) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(has_table());
  std::ofstream(go) << "on";
  EXPECT_EQ(job.wait(), 0);
}

TEST(LauncherOutput, ALineWithoutEndIsCutAndNothingIsLost) {
  Launched job(1, "head -c 300000 /dev/zero | tr '\\0' z");
  EXPECT_EQ(job.wait(), 0);
  size_t letters = 0;
  for (const std::string& line : lines_of(job.out(), "[rank 0] ")) {
    EXPECT_LE(line.size(), 65536U);
    letters += line.size();
  }
  EXPECT_EQ(letters, 300'000U);
}

TEST(LauncherOutput, LogFilesHoldEverythingARankWrote) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                       ("argosy-launcher-logs-" + std::to_string(::getpid()));
  Launched job(2,
               "echo out; echo err >&2; echo in $ARGOSY_LOG_DIR; [ $RANK = 0 ] || exit 4",
               {"--log_dir", folder});
  EXPECT_EQ(job.wait(), 4);
  std::vector<std::filesystem::path> runs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    runs.push_back(entry.path());
  }
  ASSERT_EQ(runs.size(), 1U);
  const std::string log = *os::read_file(runs[0] / "rank1.log");
  EXPECT_THAT(log, HasSubstr("out\n"));
  EXPECT_THAT(log, HasSubstr("err\n"));
  EXPECT_THAT(log, HasSubstr("in " + runs[0].string() + "\n"));
  EXPECT_THAT(job.err(),
              HasSubstr("[launch] its whole output is in " + (runs[0] / "rank1.log").string()));
  std::filesystem::remove_all(folder);
}

TEST(LauncherOutput, OneFileHasAllLinesWithTheirTimes) {
  const TempDir folder;
  Launched job(2,
               "[ $RANK = 1 ] && sleep 0.2; echo out $RANK; echo err $RANK >&2; printf unfinished",
               {"--log_dir", folder.path().string()});
  EXPECT_EQ(job.wait(), 0);
  const std::filesystem::path run = *std::filesystem::directory_iterator(folder.path());
  const std::string all = *os::read_file((run / "all.log").string());
  EXPECT_THAT(all, testing::ContainsRegex("20[0-9-]+ [0-9:.]+ rank 0 out[|] out 0\n"));
  EXPECT_THAT(all, HasSubstr(" rank 1 err| err 1\n"));
  EXPECT_THAT(all, HasSubstr(" rank 1 out| unfinished\n"));
  EXPECT_LT(all.find("out 0"), all.find("out 1"));
  EXPECT_EQ(std::ranges::count(all, '\n'), 6);
}

TEST(LauncherOutput, RedirectsAndTeeGoToTorchrunsFiles) {
  const TempDir folder;
  Launched job(2,
               "echo out $RANK; echo err $RANK >&2",
               {"-r", "0:3,1:1", "-t", "0:2", "--rdzv_id", "night", "--log_dir", folder.path()});
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(job.out(), "");                               // both redirect it
  EXPECT_THAT(job.err(), HasSubstr("[rank 0] err 0\n"));  // tee wins
  EXPECT_THAT(job.err(), HasSubstr("[rank 1] err 1\n"));  // not redirected
  const std::filesystem::path run = *std::filesystem::directory_iterator(folder.path());
  EXPECT_THAT(run.filename().string(), testing::StartsWith("night_"));
  EXPECT_EQ(*os::read_file(run / "attempt_0/0/stdout.log"), "out 0\n");
  EXPECT_EQ(*os::read_file(run / "attempt_0/0/stderr.log"), "err 0\n");
  EXPECT_EQ(*os::read_file(run / "attempt_0/1/stdout.log"), "out 1\n");
  EXPECT_FALSE(std::filesystem::exists(run / "attempt_0/1/stderr.log"));
}

TEST(LauncherOutput, LinesThatAreAskedForGoToOneMoreFile) {
  const std::string script =
      "echo an apple $RANK; echo or,ange; echo orange; echo no apples >&2; "
      "printf 'unfinished apple'";
  const TempDir folder;
  for (const std::string layout : {"--tee=3", "--log_line_prefix_template=[rank ${rank}] "}) {
    const auto logs = folder.path() / layout.substr(2, 3);
    Launched job({.args = {"--nproc_per_node=2",
                           layout,
                           "--log_dir=" + logs.string(),
                           "--duplicate_stdout_filters=apple,or,,ange",
                           "--duplicate-stderr-filters=apple",
                           "sh",
                           "-c",
                           script}});
    ASSERT_EQ(job.wait(), 0) << job.err();
    const auto run = std::filesystem::directory_iterator(logs)->path();
    const auto place = layout == "--tee=3" ? run / "attempt_0" : run;
    const std::string out = *os::read_file(place / "filtered_stdout.log");
    for (const std::string rank : {"0", "1"}) {
      EXPECT_EQ(lines_of(out, "[rank " + rank + "] "),
                (std::vector<std::string>{"an apple " + rank, "or,ange", "unfinished apple"}));
      EXPECT_THAT(*os::read_file(place / "filtered_stderr.log"),
                  HasSubstr("[rank " + rank + "] no apples\n"));
    }
  }
}

TEST(LauncherOutput, PaddlesFoldersHaveTheEndpoints) {
  const TempDir folder;
  Launched job({.shell = "cd " + folder.path().string() +
                         " && exec \"$0\" paddle-launch --nproc_per_node 2 sh -c 'echo "
                         "$PADDLE_TRAINER_ENDPOINTS'"});
  ASSERT_EQ(job.wait(), 0) << job.err();
  std::string endpoints = lines_of(job.out(), "[rank 0] ").at(0);
  endpoints.replace(endpoints.find(','), 1, "\n");
  EXPECT_EQ(*os::read_file(folder.path() / "log/endpoints.log"),
            "PADDLE_TRAINER_ENDPOINTS: \n" + endpoints + "\n");
}

TEST(LauncherOutput, OnlyTheRanksAskedForAreShownAndPrefixesAreTheUsers) {
  const TempDir folder;
  Launched job(3,
               "echo $RANK; [ $RANK = 1 ] && { echo hidden words; exit 3; }; sleep 1000",
               {"--local_ranks_filter=0,2",
                "--log_line_prefix_template",
                "<${role_name} ${rank}> ",
                "--role=trainer",
                "--log_dir",
                folder.path()});
  EXPECT_EQ(job.wait(), 3);
  EXPECT_THAT(lines_of(job.out(), "<trainer 1> "), IsEmpty());
  EXPECT_THAT(job.err(), HasSubstr("  | hidden words\n"));  // the report needs them
  const std::filesystem::path run = *std::filesystem::directory_iterator(folder.path());
  EXPECT_EQ(*os::read_file(run / "rank1.log"), "1\nhidden words\n");
}

TEST(LauncherOutput, AReaderThatLeavesCostsNeitherRanksNorExitCode) {
  Launched job({.args = {"--nproc_per_node=2",
                         "sh",
                         "-c",
                         "echo first; cat >/dev/null; seq 100000; echo done >&2; [ $RANK = 1 ]"},
                .with_input = true});
  ASSERT_TRUE(job.wait_for_output("first", 2));
  job.stop_reading();
  job.input().close();
  EXPECT_EQ(job.wait(), 1);
  EXPECT_THAT(job.err(), HasSubstr("[rank 0] done"));
  EXPECT_THAT(job.err(), HasSubstr("[launch] rank 0 "));
  EXPECT_THAT(job.survivors(), IsEmpty());
}

TEST(LauncherOutput, AFullDiskIsAFailureWhereNoFileKeepsTheOutput) {
  Launched lost({.shell = "exec \"$0\" launch --log_dir '' echo words >/dev/full"});
  EXPECT_EQ(lost.wait(), 1);
  EXPECT_THAT(lost.err(), HasSubstr("[launch] standard output ends here: No space left on device"));
  const TempDir folder;
  Launched kept({.shell = "cd " + folder.path().string() +
                          "; exec \"$0\" launch --log_dir logs echo words >/dev/full"});
  EXPECT_EQ(kept.wait(), 0);
  EXPECT_THAT(kept.err(), HasSubstr("[launch] standard output ends here: No space left on device"));
}

TEST(LauncherOutput, LostErrorsOfRanksAreAFailureAndLostWordsOfOursAreNot) {
  const std::string start = "exec \"$0\" launch --log_dir ";
  Launched lost({.shell = start + "'' sh -c 'echo words >&2' 2>/dev/full"});
  EXPECT_EQ(lost.wait(), 1);
  Launched ours({.shell = start + "'' echo words 2>/dev/full"});
  EXPECT_EQ(ours.wait(), 0);
  const TempDir folder;
  Launched kept({.shell = "cd " + folder.path().string() + "; " + start +
                          "logs sh -c 'echo a >&2' 2>/dev/full"});
  EXPECT_EQ(kept.wait(), 0);
}

TEST(LauncherOutput, ALimitOfFileSizesIsAFullDisk) {
  const TempDir folder;
  Launched job({.shell = "cd " + folder.path().string() +
                         "; ulimit -f 1; exec \"$0\" launch --log_dir '' sh -c 'head -c 5000 "
                         "/dev/zero; exit 3' >output"});
  EXPECT_EQ(job.wait(), 3);
  EXPECT_THAT(job.err(), HasSubstr("[launch] standard output ends here: File too large"));
}

TEST(LauncherOutput, ADiskThatIsFullForTheLogsTooIsAFailure) {
  for (const std::string command : {"launch", "paddle-launch"}) {
    const TempDir folder;
    Launched job({.shell = "cd " + folder.path().string() + "; ulimit -f 1; exec \"$0\" " +
                           command + " --log_dir logs sh -c 'head -c 5000 /dev/zero' >output"});
    EXPECT_EQ(job.wait(), 1) << job.err();
    EXPECT_THAT(job.err(), HasSubstr("[launch] standard output ends here: File too large"));
    EXPECT_THAT(job.err(), Not(HasSubstr("the logs have all of it")));
  }
}

TEST(LauncherOutput, LogsOfTheRanksMayBeWholeWhereTheirSumIsNot) {
  const TempDir folder;
  Launched job({.shell = "cd " + folder.path().string() +
                         "; ulimit -f 1; exec \"$0\" launch -n 2 --log_dir logs sh -c 'head -c 700 "
                         "/dev/zero' >output"});
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_THAT(job.err(), HasSubstr("the logs have all of it"));
}

TEST(LauncherOutput, AFullDiskIsSeenBehindSshToo) {
  const TempDir folder;
  const std::string here = "cd " + folder.path().string() +
                           "; echo 127.0.0.1 >hosts; printf '#!/bin/sh\\nfor last; do :; done\\n"
                           "exec sh -c \"$last\"\\n' >ssh; chmod +x ssh; export ARGOSY_SSH_COMMAND="
                           "./ssh; exec \"$0\" launch --hostfile hosts --ssh ";
  Launched lost({.shell = here + "--log_dir '' echo words >/dev/full"});
  EXPECT_EQ(lost.wait(), 1);
  EXPECT_THAT(lost.err(), HasSubstr("[launch] standard output ends here: No space left on device"));
  Launched whole({.shell = here + "--log_dir '' echo words"});
  EXPECT_EQ(whole.wait(), 0) << whole.err();
  EXPECT_THAT(whole.out(), HasSubstr("[rank 0] words\n"));
}

/// What two ranks of `script` show on a terminal.
std::string on_a_terminal(const std::string& script, std::vector<std::string> env) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr), 0);
  const os::UniqueFd master(ends[0]);
  os::UniqueFd slave(ends[1]);
  Launched job({.args = {"--nproc_per_node=2", "--log_dir=", "sh", "-c", script},
                .env = std::move(env),
                .terminal = slave.get()});
  slave.close();
  EXPECT_EQ(job.wait(), 0);
  std::string shown;
  std::array<char, 4096> chunk{};
  for (ssize_t got = 0; (got = ::read(master.get(), chunk.data(), chunk.size())) > 0;) {
    shown.append(chunk.data(), static_cast<size_t>(got));
  }
  return shown;
}

TEST(LauncherOutput, OnATerminalRanksHaveColors) {
  for (const bool plain : {false, true}) {
    const std::string shown =
        on_a_terminal("echo line $RANK", {"TERM=xterm", plain ? "NO_COLOR=1" : "NO_COLOR="});
    EXPECT_THAT(shown, HasSubstr(plain ? "[rank 1] line 1" : "\x1b[33m[rank 1] \x1b[0mline 1"));
    EXPECT_EQ(shown.find('\x1b') == std::string::npos, plain);
  }
}

TEST(LauncherOutput, ADumbTerminalGetsWholeLinesOnly) {
  const std::string shown =
      on_a_terminal("printf 'line '; sleep 0.1; echo $RANK", {"TERM=dumb", "NO_COLOR="});
  EXPECT_THAT(shown, HasSubstr("[rank 0] line 0\r\n"));
  EXPECT_EQ(shown.find('\x1b'), std::string::npos) << shown;
}

TEST(LauncherOutput, OnATerminalRankZeroMayDrawABar) {
  std::array<int, 2> ends{};
  winsize size{};
  size.ws_col = 100;
  size.ws_row = 24;
  ASSERT_EQ(::openpty(&ends[0], &ends[1], nullptr, nullptr, &size), 0);
  const os::UniqueFd master(ends[0]);
  os::UniqueFd slave(ends[1]);
  Launched job({.args = {"--nproc_per_node=2",
                         "sh",
                         "-c",
                         "echo $RANK $ARGOSY_PROGRESS $COLUMNS; [ $RANK = 1 ] || "
                         "{ printf '\\r10%%'; cat; printf '\\r20%%\\n'; }"},
                .env = {"TERM=xterm", "COLUMNS=", "NO_COLOR=1"},
                .with_input = true,
                .terminal = slave.get()});
  slave.close();
  std::string shown;
  std::array<char, 4096> chunk{};
  while (shown.find("[rank 0] 10%") == std::string::npos ||
         shown.find("[rank 1] 1 plain") == std::string::npos) {
    const ssize_t got = ::read(master.get(), chunk.data(), chunk.size());
    ASSERT_GT(got, 0) << shown;
    shown.append(chunk.data(), static_cast<size_t>(got));
  }
  job.input().close();
  EXPECT_EQ(job.wait(), 0);
  for (ssize_t got = 0; (got = ::read(master.get(), chunk.data(), chunk.size())) > 0;) {
    shown.append(chunk.data(), static_cast<size_t>(got));
  }
  EXPECT_THAT(shown, HasSubstr("[rank 0] 0 tty 91\r\n"));
  EXPECT_THAT(shown, HasSubstr("\r\x1b[K[rank 0] 20%\r\n"));
}

}  // namespace
}  // namespace argosy::test
