#include "argosy/launch/report_json.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "argosy/os/fd.h"

#include "tests/support/temp_dir.h"
#include <nlohmann/json.hpp>

namespace argosy::launch {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

TEST(ReportJson, OfAJobThatWentWell) {
  const json report =
      json::parse(to_json({.run_id = "r1", .job_id = "r1", .program = {"a b"}, .ranks = 4}));
  EXPECT_EQ(report["exit_code"], 0);
  EXPECT_EQ(report["ranks"], 4);
  EXPECT_EQ(report["program"], json::array({"a b"}));
  EXPECT_FALSE(report.contains("first_failure") || report.contains("interrupted_by"));
}

TEST(ReportJson, TellsNoSecret) {
  const std::vector<std::string> program{"./train", "--api-key", "hunter2", "--token=hunter2"};
  const RankEnd end{.exit = {.code = 1}, .program = "TOKEN=hunter2"};
  const std::string report =
      to_json({.program = program, .ranks = 1, .failure = FailureReport{.first = end}});
  EXPECT_NE(report.find("--token=(hidden)"), std::string::npos) << report;
  EXPECT_EQ(report.find("hunter2"), std::string::npos) << report;
}

TEST(ReportJson, NamesTheFirstFailureAndTheOthers) {
  const RankEnd first{.rank = 3,
                      .pid = 7,
                      .exit = {.signal = SIGKILL},
                      .at_us = 1000,
                      .ran = 1500ms,
                      .host = "h",
                      .last_lines = {"bytes \xff"},
                      .program = "theirs"};
  const RankEnd other{
      .rank = 0, .pid = 8, .exit = {.code = 1}, .at_us = 3000, .asked_to_stop = true};
  const json report =
      json::parse(to_json({.exit_code = 137,
                           .interrupted_by = SIGTERM,
                           .failure = FailureReport{.first = first, .others = {other}},
                           .lost = {"node 1 (h, a)"}}));
  const json& failure = report["first_failure"];
  EXPECT_EQ(failure["rank"], 3);
  EXPECT_EQ(failure["host"], "h");
  EXPECT_EQ(failure["program"], "theirs");
  EXPECT_EQ(failure["exit_code"], 137);
  EXPECT_EQ(failure["signal"], "SIGKILL");
  EXPECT_EQ(failure["seconds"], 1.5);
  EXPECT_EQ(failure["last_lines"].size(), 1U);
  EXPECT_EQ(failure["others"][0]["after_first_ms"], 2.0);
  EXPECT_EQ(failure["others"][0]["stopped_by_launcher"], true);
  EXPECT_EQ(report["interrupted_by"], "SIGTERM");
  EXPECT_EQ(report["lost_nodes"][0], "node 1 (h, a)");
}

TEST(ReportJson, IsWrittenWholeOrNotAtAll) {
  EXPECT_FALSE(write_json({}, "/proc/nowhere/report.json").ok());
  EXPECT_FALSE(prepare_json("/proc/nowhere/report.json").ok());
  const test::TempDir folder;
  const std::string path = (folder.path() / "report.json").string();
  ASSERT_TRUE(write_json({.exit_code = 7}, path).ok());
  EXPECT_EQ(json::parse(*os::read_file(path))["exit_code"], 7);
  ASSERT_TRUE(prepare_json(path).ok());  // yesterday's says nothing about today
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_TRUE(write_json({}, "/dev/null").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(ReportJson, AFolderIsRefusedAtOnce) {
  const test::TempDir folder;
  EXPECT_FALSE(check_json(folder.path().string()).ok());
  EXPECT_FALSE(prepare_json(folder.path().string()).ok());
  EXPECT_TRUE(check_json((folder.path() / "new.json").string()).ok());
}

TEST(ReportJson, ALinkStaysALink) {
  const test::TempDir folder;
  const std::string file = (folder.path() / "job7.json").string();
  const std::string link = (folder.path() / "latest.json").string();
  std::ofstream(file) << "old";
  std::filesystem::create_symlink("job7.json", link);
  ASSERT_TRUE(prepare_json(link).ok());
  EXPECT_FALSE(std::filesystem::exists(file));
  ASSERT_TRUE(write_json({.exit_code = 7}, link).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(json::parse(*os::read_file(file))["exit_code"], 7);
}

TEST(ReportJson, AFileInDevShmIsAFile) {
  const std::string path = "/dev/shm/argosy-report-" + std::to_string(::getpid());
  for (const int code : {3, 4}) {
    ASSERT_TRUE(prepare_json(path).ok());
    ASSERT_TRUE(write_json({.exit_code = code}, path).ok());
    EXPECT_EQ(json::parse(*os::read_file(path))["exit_code"], code);
  }
  std::filesystem::remove(path);
}

TEST(ReportJson, StandardOutputIsAppendedToWhateverItIs) {
  const test::TempDir folder;
  const std::string log = (folder.path() / "log").string();
  os::UniqueFd out = *os::open_file(log, O_WRONLY | O_CREAT);
  ASSERT_TRUE(os::write_all(out.get(), "what the ranks said\n").ok());
  const std::string path = "/proc/self/fd/" + std::to_string(out.get());
  ASSERT_TRUE(prepare_json(path).ok());
  ASSERT_TRUE(write_json({.exit_code = 7}, path).ok());
  const std::string text = *os::read_file(log);
  EXPECT_TRUE(text.starts_with("what the ranks said\n{")) << text;
}

TEST(ReportJson, APipeThatNobodyReadsIsNotWaitedFor) {
  const test::TempDir folder;
  const std::string pipe = (folder.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(prepare_json(pipe).ok());
  EXPECT_FALSE(write_json({}, pipe).ok());
  const os::UniqueFd reader = *os::open_file(pipe, O_RDONLY | O_NONBLOCK);
  EXPECT_TRUE(write_json({}, pipe).ok());
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

}  // namespace
}  // namespace argosy::launch
