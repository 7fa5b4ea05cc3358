#include "argosy/launch/log_layout.h"

#include <gtest/gtest.h>

namespace argosy::launch {
namespace {

TEST(LogLayout, OursHasOneFilePerRankAndLife) {
  const LogPlan plan{.folder = "runs/r1"};
  const RankFiles files = plan.files(5, 1, 0);
  EXPECT_EQ(files.out, "runs/r1/rank5.log");
  EXPECT_EQ(files.err, files.out);
  EXPECT_EQ(files.start, LogFile::Start::kEmpty);
  EXPECT_TRUE(files.out_shown && files.err_shown);
  EXPECT_EQ(plan.files(5, 1, 2).out, "runs/r1/rank5.restart2.log");
  EXPECT_EQ(LogPlan().files(0, 0, 0).out, "");
  EXPECT_EQ(plan.pattern(), "runs/r1/rank<k>.log");
  EXPECT_EQ(plan.combined(0), "runs/r1/all.log");
  EXPECT_EQ(plan.combined(3), "runs/r1/all.node3.log");
  EXPECT_EQ(LogPlan().combined(0), "");
}

TEST(LogLayout, TorchrunsKeepsTheStreamsApartAndOnlyThoseAskedFor) {
  const LogPlan plan{.layout = LogLayout::kTorchrun,
                     .folder = "d",
                     .redirects = {.everyone = 3, .ranks = {{1, 0}}},
                     .tee = {.everyone = 0, .ranks = {{0, 1}, {1, 2}}}};
  const RankFiles zero = plan.files(4, 0, 1);
  EXPECT_EQ(zero.out, "d/attempt_1/0/stdout.log");
  EXPECT_EQ(zero.err, "d/attempt_1/0/stderr.log");
  EXPECT_TRUE(zero.out_shown);  // tee wins over redirect
  EXPECT_FALSE(zero.err_shown);
  const RankFiles one = plan.files(5, 1, 0);
  EXPECT_EQ(one.out, "");
  EXPECT_EQ(one.err, "d/attempt_0/1/stderr.log");
  EXPECT_TRUE(one.out_shown && one.err_shown);
}

TEST(LogLayout, PaddlesIsAppendedTo) {
  LogPlan plan{.layout = LogLayout::kPaddle, .folder = "log"};
  EXPECT_EQ(plan.files(9, 1, 0).out, "log/workerlog.1");
  EXPECT_EQ(plan.files(9, 1, 0).start, LogFile::Start::kAtTheEnd);
  plan.overwrite = true;
  EXPECT_EQ(plan.files(9, 1, 0).start, LogFile::Start::kEmpty);
  EXPECT_EQ(plan.files(9, 1, 1).start, LogFile::Start::kAtTheEnd);  // not what it wrote before
  plan.servers = 2;
  EXPECT_EQ(plan.files(1, 1, 0).out, "log/serverlog.1");
  EXPECT_EQ(plan.files(2, 2, 0).out, "log/workerlog.0");
}

}  // namespace
}  // namespace argosy::launch
