#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/text.h"
#include "argosy/events/jsonl_writer.h"
#include "argosy/events/progress_bar.h"

#include "tests/support/temp_dir.h"
#include <nlohmann/json.hpp>

namespace argosy::events {
namespace {

using namespace std::chrono_literals;

/// A bar that draws into a file, with a clock that the test moves.
class ProgressTest : public ::testing::Test {
 protected:
  void SetUp() override { file_ = std::tmpfile(); }
  void TearDown() override { std::fclose(file_); }

  ProgressBarOptions options(ProgressStyle style) {
    return {.label = "epoch 1/3",
            .total = 1000,
            .unit = "images",
            .style = style,
            .out = file_,
            .columns = 100,
            .now = [this] { return now_; }};
  }
  std::string drawn() {
    std::string text(static_cast<size_t>(std::ftell(file_)), '\0');
    std::rewind(file_);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), file_), text.size());
    return text;
  }

  std::FILE* file_ = nullptr;
  std::chrono::steady_clock::time_point now_{};
};

TEST_F(ProgressTest, BarRedrawsItsLine) {
  ProgressBar bar(options(ProgressStyle::kBar));
  now_ += 1s;
  bar.show("loss", 0.42134);
  bar.advance(500);
  bar.advance(100);  // too soon: not drawn
  now_ += 1s;
  bar.advance(400);  // finish() draws that
  bar.finish();
  bar.finish();
  EXPECT_EQ(drawn(),
            "\repoch 1/3 [===============>              ]  50%  loss 0.4213  500 images/s  0:01 "
            "left\x1b[K"
            "\repoch 1/3 [==============================] 100%  loss 0.4213  500 images/s  in "
            "0:02\x1b[K\n");
}

TEST_F(ProgressTest, SharesAreWholePerCents) {
  ProgressBar bar(options(ProgressStyle::kLines));
  now_ += 6s;
  bar.show("loss", 0.5);
  bar.show_share("input-bound", 0.124);
  bar.advance(600);
  now_ += 4s;
  bar.show_share("input-bound", 1);
  bar.advance(400);
  bar.finish();
  EXPECT_THAT(
      drawn(),
      ::testing::AllOf(
          ::testing::HasSubstr("60%  loss 0.5000  input-bound 12 %  100 images/s  0:04 left\n"),
          ::testing::HasSubstr("100%  loss 0.5000  input-bound 100 %  100 images/s  in 0:10\n")));
}

TEST_F(ProgressTest, LinesComeAtTheirInterval) {
  ProgressBar bar(options(ProgressStyle::kLines));
  now_ += 4s;
  bar.advance(400);
  now_ += 1s;
  bar.advance(100);
  bar.finish();
  EXPECT_EQ(drawn(),
            "epoch 1/3  50%  100 images/s  0:05 left\n"
            "epoch 1/3  50%  100 images/s  in 0:05\n");
}

TEST_F(ProgressTest, NarrowTerminalIsNotOverrun) {
  ProgressBarOptions narrow = options(ProgressStyle::kBar);
  for (const auto& [columns, shown] :
       std::vector<std::pair<int, std::string>>{{42, "epoch 1/3  50%  500 images/s  0:01 left"},
                                                {30, "epoch 1/3  50%  0:01 left"},
                                                {24, "epoch 1/3  50%"},
                                                {9, "epoch 1/"}}) {
    narrow.columns = columns;
    ProgressBar bar(narrow);
    now_ += 1s;
    bar.advance(500);
    EXPECT_THAT(drawn(), testing::EndsWith("\r" + shown + "\x1b[K")) << columns;
  }
}

// The launcher sets COLUMNS to what its prefix leaves of the terminal.
TEST_F(ProgressTest, NoValueOfColumnsStopsTheProgram) {
  for (const char* columns : {"12", "3", "-1", "100000", "wide", ""}) {
    ASSERT_EQ(setenv("COLUMNS", columns, 1), 0);  // NOLINT(concurrency-mt-unsafe): one thread
    ProgressBarOptions by_environment = options(ProgressStyle::kBar);
    by_environment.columns = 0;
    ProgressBar bar(by_environment);
    now_ += 1s;
    EXPECT_NO_THROW(bar.advance(500)) << columns;
  }
  ASSERT_EQ(unsetenv("COLUMNS"), 0);  // NOLINT(concurrency-mt-unsafe): one thread
}

TEST_F(ProgressTest, OffSaysNothing) {
  {
    ProgressBar bar(options(ProgressStyle::kOff));
    now_ += 1min;
    bar.advance(1000);
    bar.finish();
  }
  EXPECT_EQ(std::ftell(file_), 0);
}

TEST_F(ProgressTest, AFileThatKeepsItGetsNoBarForTheLaunchersWord) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> into_pipe(::fdopen(ends[1], "w"),
                                                                  std::fclose);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out_of_pipe(::fdopen(ends[0], "r"),
                                                                    std::fclose);
  const auto style = [](const char* progress, std::FILE* out) {
    ::setenv("ARGOSY_PROGRESS", progress, 1);  // NOLINT(concurrency-mt-unsafe): one thread
    return automatic_style(out);
  };
  EXPECT_EQ(style("tty", into_pipe.get()), ProgressStyle::kBar);
  EXPECT_EQ(style("tty", file_), ProgressStyle::kLines);
  EXPECT_EQ(style("bar", file_), ProgressStyle::kBar);
  EXPECT_EQ(style("off", file_), ProgressStyle::kOff);
  ::unsetenv("ARGOSY_PROGRESS");  // NOLINT(concurrency-mt-unsafe): one thread
}

TEST_F(ProgressTest, AnErrorMessageStartsOnItsOwnLine) {
  {
    ProgressBar bar(options(ProgressStyle::kBar));
    bar.advance(1);
  }
  EXPECT_EQ(drawn().back(), '\n');
}

TEST_F(ProgressTest, WithoutATotalThereIsNoTimeLeft) {
  ProgressBarOptions open_ended = options(ProgressStyle::kLines);
  open_ended.total = 0;
  ProgressBar bar(open_ended);
  now_ += 10s;
  bar.advance(12345);
  EXPECT_EQ(drawn(), "epoch 1/3 12,345 images  1,235 images/s\n");
}

TEST(Text, NumbersAndTimes) {
  EXPECT_EQ(clock_time(7.4), "0:07");
  EXPECT_EQ(clock_time(3725), "1:02:05");
  EXPECT_EQ(clock_time(std::numeric_limits<double>::infinity()), "?");
}

TEST(Jsonl, WritesWholeLinesAndNullForNan) {
  std::string folder = "/tmp/argosy_events_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/deep/metrics.jsonl";
  {
    JsonlWriter writer(path);
    writer.write({{"epoch", 1}, {"loss", 0.5}});
    writer.write({{"loss", std::numeric_limits<double>::quiet_NaN()}, {"note", "a\nb"}});
  }
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, R"({"epoch":1,"loss":0.5})");
  std::getline(file, line);
  EXPECT_EQ(line, R"({"loss":null,"note":"a\nb"})");
  std::filesystem::remove_all(folder);
}

// A limit on the file's size stands for a full disk: the first write is short, the second fails.
TEST(Jsonl, ARecordThatDoesNotFitIsTakenBack) {
  const test::TempDir folder;
  const std::string path = (folder.path() / "metrics.jsonl").string();
  JsonlWriter writer(path);
  writer.write({{"epoch", 1}});
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_action = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = 20, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_THROW(writer.write({{"epoch", 2}, {"loss", 0.5}}), DataError);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_action);
  writer.write({{"epoch", 3}});
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, "{\"epoch\":1}\n{\"epoch\":3}\n");
}

TEST(Jsonl, NamesThePathThatCannotBeWritten) {
  EXPECT_THROW(
      {
        try {
          JsonlWriter writer("/dev/null/metrics.jsonl");
        } catch (const DataError& error) {
          EXPECT_STREQ(error.what(),
                       "[events.jsonl] /dev/null/metrics.jsonl: cannot open for writing: Not a "
                       "directory (ENOTDIR)");
          throw;
        }
      },
      DataError);
}

}  // namespace
}  // namespace argosy::events
