#include "argosy/launch/log_reader.h"

#include <chrono>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/launch/combined_log.h"
#include "argosy/os/fd.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::launch {
namespace {

using testing::HasSubstr;

class Logs : public testing::Test {
 protected:
  Logs() {
    std::ofstream(folder_.path() / "all.log") << "2026-11-20 15:00:00.000001 rank 0 out| start\n"
                                                 "2026-11-20 15:00:02.000000 rank 1 err| warning\n";
    std::ofstream(folder_.path() / "all.node1.log")
        << "2026-11-20 15:00:00.000002 rank 2 out| start here\n"
           "2026-11-20 15:00:01.000000 rank 10 out| \n"
           "torn\n";
  }
  std::string print(LogQuery query) {
    query.folder = folder_.path().string();
    const std::string path = (folder_.path() / "out").string();
    std::FILE* file = std::fopen(path.c_str(), "w");
    count_ = print_logs(query, file);
    std::fclose(file);
    return *os::read_file(path);
  }
  test::TempDir folder_;
  int64_t count_ = 0;
};

TEST_F(Logs, OfAllNodesComeInTheOrderOfTime) {
  EXPECT_EQ(print({}),
            "2026-11-20 15:00:00.000001 rank 0 out| start\n"
            "2026-11-20 15:00:00.000002 rank 2 out| start here\n"
            "2026-11-20 15:00:01.000000 rank 10 out| \n"
            "2026-11-20 15:00:02.000000 rank 1 err| warning\n");
  EXPECT_EQ(count_, 4);
}

TEST_F(Logs, ARankThatPrintedNothingIsSaid) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(print({.ranks = {9}}), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "[logs] rank 9 printed nothing here; ranks that did: 0-2, 10\n");
}

TEST_F(Logs, AnEndThatCameTooEarlyIsSaid) {
  std::ofstream(folder_.path() / "all.log", std::ios::app) << "2026-11-20 15:00:03.000000 rank 1 o";
  testing::internal::CaptureStderr();
  EXPECT_EQ(print({.ranks = {9}}), "");
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "[logs] " + (folder_.path() / "all.log").string() +
          " ends in the middle of a line: the job writes to it just now, or its disk was full; "
          "rank<k>.log beside it may have more\n"
          "[logs] rank 9 is not in what there is of the log; ranks that are: 0-2, 10\n");
}

TEST_F(Logs, OneThatHasNoLineIsSaidBesideOneThatEndsTooEarly) {
  std::ofstream(folder_.path() / "all.log", std::ios::trunc).flush();
  std::ofstream(folder_.path() / "all.node1.log", std::ios::trunc) << "2026";
  testing::internal::CaptureStderr();
  EXPECT_EQ(print({.ranks = {0}}), "");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("all.log is empty: the job writes to it just now, or its disk"));
  EXPECT_THAT(said, HasSubstr("all.node1.log ends in the middle of a line: "));
  EXPECT_THAT(said, HasSubstr("rank 0 is not in what there is of the log; ranks that are: none\n"));
}

TEST_F(Logs, AreChosenByRankTextAndStream) {
  EXPECT_THAT(print({.ranks = {1}}), HasSubstr("warning"));
  EXPECT_EQ(count_, 1);
  EXPECT_THAT(print({.ranks = {1, 10}}), HasSubstr("rank 10"));
  EXPECT_EQ(count_, 2);
  EXPECT_THAT(print({.pattern = "^start( here)?$"}), HasSubstr("start here"));
  EXPECT_EQ(count_, 2);
  testing::internal::CaptureStderr();
  EXPECT_EQ(print({.pattern = "rank"}), "");  // the text alone is searched
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[logs] no line of this run matches\n");
  EXPECT_EQ(print({.errors_only = true}), "2026-11-20 15:00:02.000000 rank 1 err| warning\n");
}

TEST_F(Logs, WhatCannotBeReadIsSaid) {
  EXPECT_THAT(test::error_text<ConfigError>([&] { (void)print({.pattern = "("}); }),
              HasSubstr("--grep \"(\""));
  EXPECT_THAT(
      test::error_text<ConfigError>([] { (void)print_logs({.folder = "/no/such"}, stdout); }),
      HasSubstr("/no/such: No such file"));
}

TEST(CombinedLogTime, IsTheLocalTimeToTheMicrosecond) {
  CombinedLog log("/no/such/all.log");
  const auto moment = std::chrono::system_clock::time_point(std::chrono::microseconds(1'500'007));
  EXPECT_THAT(log.stamp(moment), testing::EndsWith(":01.500007 "));
  EXPECT_EQ(log.stamp(moment).size(), CombinedLog::kTimeLength + 1);
}

}  // namespace
}  // namespace argosy::launch
