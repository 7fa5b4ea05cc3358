#include "argosy/launch/report.h"

#include <signal.h>

#include <chrono>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;

RankEnd code(int rank, int exit_code) {
  return {.rank = rank, .pid = 100 + rank, .exit = {exit_code, 0}, .ran = 310ms};
}
RankEnd with_lines(RankEnd end, std::vector<std::string> lines, std::string log_path = "") {
  end.last_lines = std::move(lines);
  end.log_path = std::move(log_path);
  return end;
}
RankEnd signalled(int rank, int signal) {
  return {.rank = rank, .pid = 100 + rank, .exit = {0, signal}, .ran = 842s};
}

TEST(RootCause, IsTheFirstToDie) {
  EXPECT_EQ(root_cause({code(3, 7), code(0, 1), signalled(1, SIGABRT)}), 0U);
  EXPECT_EQ(root_cause({signalled(4, SIGKILL), signalled(1, SIGSEGV)}), 0U);
}

TEST(RootCause, ButASignalGoesBeforeReactionsToIt) {
  EXPECT_EQ(root_cause({code(0, 1), signalled(1, SIGABRT), signalled(3, SIGKILL), code(4, 1)}), 2U);
}

TEST(Report, NamesTheFirstFailureItsLinesAndTheOthers) {
  RankEnd late = code(1, 1);
  late.at_us += 3000;
  RankEnd stopped2 = signalled(2, SIGTERM);
  stopped2.asked_to_stop = true;
  RankEnd stopped0 = code(0, 143);
  stopped0.asked_to_stop = true;
  EXPECT_EQ(
      render({.first = with_lines(
                  signalled(3, SIGKILL), {"epoch 1", "10%\r20%\r"}, "logs/run/rank3.log"),
              .others = {code(4, 0), late, stopped2, stopped0},
              .what_now = "exit code 137"}),
      "[launch] rank 3 (pid 103) was killed by SIGKILL (often the out-of-memory killer) "
      "after 14 min 02 s; its last lines:\n"
      "  | epoch 1\n"
      "  | 20%\n"
      "[launch] its whole output is in logs/run/rank3.log\n"
      "[launch] failed after it: rank 1 code 1 (+3.0 ms); stopped by the launcher: ranks 0, 2; "
      "ended well: rank 4\n"
      "[launch] what may help: somebody or something killed it: dmesg, the queue's limits, argosy "
      "doctor\n"
      "[launch] exit code 137. See docs/guides/errors.md#rank-failed\n");
}

TEST(Report, SaysWhenWhereAndWhat) {
  RankEnd first = code(3, 127);
  first.at_us = 1'795'153'442'123'456;
  first.last_lines = {"error while loading shared libraries: libx.so.1"};
  first.program = "./train --lr 0.1";
  const std::string text = render({.first = first, .host = "gpu02", .what_now = "exit code 127"});
  EXPECT_THAT(
      text, testing::HasSubstr("exited with code 127 (a command or a library that was not found)"));
  EXPECT_THAT(
      text,
      testing::ContainsRegex("this happened at 20[0-9-]+ [0-9:]+[.]123456 on gpu02: ./train --lr "
                             "0.1\n"));
  EXPECT_THAT(text, testing::HasSubstr("[launch] what may help: a shared library is missing: ldd"));
}

TEST(Report, ByTheKernelsCountOrNot) {
  RankEnd end = signalled(3, SIGKILL);
  end.out_of_memory = true;
  EXPECT_THAT(describe(end), testing::HasSubstr("SIGKILL (the out-of-memory killer was at work"));
  end.out_of_memory = false;
  EXPECT_THAT(describe(end), testing::HasSubstr("SIGKILL (not the out-of-memory killer"));
}

TEST(Report, SaysWhatTheRankItselfSaidUnlessItsLastLinesDo) {
  FailureReport report{.first = with_lines(signalled(3, SIGABRT), {"    @ 0x12  main"}),
                       .what_now = "exit code 134"};
  report.first.error = ErrorNote{.message = "ValueError: no\nat all", .path = "r/e.json"};
  EXPECT_THAT(render(report),
              testing::HasSubstr("main\n[launch] it reported ValueError: no … (in r/e.json)\n"));
  report.first.last_lines = {"terminate called after ValueError", "  what(): no"};
  EXPECT_THAT(render(report), testing::Not(testing::HasSubstr("it reported")));
  report.first.last_lines.clear();
  report.first.error->message = std::string(10000, 'x');
  EXPECT_LT(render(report).size(), 1000);
}

TEST(Report, OfASilentRankAlone) {
  EXPECT_EQ(render({.first = code(0, 3), .what_now = "restart 1 of 3 now"}),
            "[launch] rank 0 (pid 100) exited with code 3 after 0.3 s; it wrote nothing.\n"
            "[launch] restart 1 of 3 now. See docs/guides/errors.md#rank-failed\n");
}

TEST(Report, DoesNotRepeatWhatAllRanksHaveSaid) {
  EXPECT_EQ(render({.first = with_lines(code(1, 3), {"no such folder"}, "logs/run/rank1.log"),
                    .others = {code(0, 3)},
                    .same_words = true,
                    .what_now = "exit code 3"}),
            "[launch] rank 1 (pid 101) exited with code 3 after 0.3 s; all 2 ranks ended with the "
            "same words, which stand above.\n"
            "[launch] its whole output is in logs/run/rank1.log\n"
            "[launch] exit code 3. See docs/guides/errors.md#rank-failed\n");
}

TEST(Report, RepeatsWhatAllRanksHaveSaidWhenItIsNotHowTheyEnded) {
  RankEnd stopped = code(1, 4);
  stopped.asked_to_stop = true;
  for (const RankEnd& other : {code(1, 0), signalled(1, SIGKILL), stopped}) {
    FailureReport report{.first = with_lines(code(0, 3), {"no GPU"}), .others = {other}};
    const std::string whole = render(report);
    report.same_words = true;
    EXPECT_EQ(render(report), whole);
    EXPECT_THAT(whole, testing::HasSubstr("  | no GPU\n"));
  }
  EXPECT_THAT(render({.first = signalled(0, SIGSEGV), .others = {code(1, 3)}, .same_words = true}),
              testing::HasSubstr("failed after it: rank 1 code 3"));
}

TEST(Report, CountsARankThatWasEndingWithTheSameCodeAsOneThatFailed) {
  RankEnd late = code(1, 3);
  late.asked_to_stop = true;
  EXPECT_THAT(render({.first = with_lines(code(0, 3), {"no such folder"}),
                      .others = {late},
                      .same_words = true}),
              testing::HasSubstr("all 2 ranks ended with the same words"));
  late = code(1, 143);
  late.asked_to_stop = true;
  EXPECT_FALSE(all_failed_by_themselves({.first = code(0, 143), .others = {late}}));
}

TEST(Report, NamesTheHostWhereThereAreSeveral) {
  RankEnd end = code(3, 1);
  end.host = "gpu02";
  EXPECT_EQ(describe(end), "rank 3 on gpu02 (pid 103) exited with code 1 after 0.3 s");
  EXPECT_EQ(render_lost({"node 1 (gpu02, 10.0.0.2)"}),
            "[launch] lost node 1 (gpu02, 10.0.0.2): its launcher was killed, or its machine or "
            "network does not answer\n");
}

TEST(Report, NamesWhoEndsOtherwiseThanByTheSignal) {
  const std::vector<RankEnd> expected{
      code(0, 0), signalled(1, SIGTERM), code(2, 128 + SIGTERM), signalled(3, SIGKILL)};
  EXPECT_EQ(render_unexpected(SIGTERM, expected), "");
  EXPECT_EQ(render_unexpected(SIGTERM, {signalled(5, SIGSEGV), expected[1], code(4, 3)}),
            "[launch] these ranks did not end by SIGTERM: rank 4 code 3, rank 5 SIGSEGV\n");
  EXPECT_EQ(render_unexpected(SIGINT, {code(0, 143)}),
            "[launch] these ranks did not end by SIGINT: rank 0 code 143\n");
}

TEST(Report, ComparesLinesWithoutTheirTime) {
  EXPECT_EQ(without_time("08:22:34.891 error no"), "error no");
  EXPECT_EQ(without_time("08:22:34.89x error no"), "08:22:34.89x error no");
  EXPECT_EQ(without_time("08:22:34"), "08:22:34");
  EXPECT_EQ(without_time(""), "");
}

}  // namespace
}  // namespace argosy::launch
