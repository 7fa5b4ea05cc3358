// What TensorBoard and VisualDL themselves read of these files: tests/peers/boards.py.
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/events/histogram.h"
#include "argosy/events/log_values.h"
#include "argosy/events/tensorboard_writer.h"
#include "argosy/events/tfrecord.h"
#include "argosy/events/visualdl_writer.h"

#include "tests/support/temp_dir.h"

namespace argosy::events {
namespace {

using ::testing::HasSubstr;

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

uint64_t number_at(const std::string& text, size_t at, size_t bytes) {
  uint64_t number = 0;
  std::memcpy(&number, text.data() + at, bytes);
  return number;
}

/// The records of a TFRecord file; each with right checksums.
std::vector<std::string> records_of(const std::string& text) {
  std::vector<std::string> records;
  size_t at = 0;
  while (at + 16 <= text.size()) {
    const uint64_t length = number_at(text, at, 8);
    EXPECT_LE(at + 16 + length, text.size());
    const std::string data = text.substr(at + 12, length);
    EXPECT_EQ(text.substr(at, 16 + length), tfrecord_frame(data));
    records.push_back(data);
    at += 16 + length;
  }
  EXPECT_EQ(at, text.size());
  return records;
}

// The check value of the CRC catalogue, and the all-zero block of RFC 3720, B.4.
TEST(TfRecord, ChecksumIsCastagnolis) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(""), 0U);
}

TEST(TfRecord, FrameIsLengthDataAndMaskedChecksums) {
  const std::string frame = tfrecord_frame("abc");
  ASSERT_EQ(frame.size(), 19U);
  EXPECT_EQ(number_at(frame, 0, 8), 3U);
  EXPECT_EQ(frame.substr(12, 3), "abc");
  const uint32_t crc = crc32c("abc");
  EXPECT_EQ(number_at(frame, 15, 4), ((crc >> 15) | (crc << 17)) + 0xa282ead8U);
}

TEST(Histograms, TensorFlowsLimitsHoldEachValueBelowTheirs) {
  const std::vector<float> values{-1.5F, 0.0F, 0.0F, 1e-13F, 0.25F, 3e30F, NAN, INFINITY};
  const Histogram h = tensorflow_histogram(values);
  EXPECT_EQ(h.num, 6);
  EXPECT_EQ(h.min, -1.5);
  EXPECT_EQ(h.max, 3e30F);
  EXPECT_EQ(std::accumulate(h.counts.begin(), h.counts.end(), 0.0), 6);
  ASSERT_EQ(h.limits.size(), h.counts.size());
  EXPECT_EQ(h.limits.back(), std::numeric_limits<double>::max());
  for (size_t i = 0; i < h.limits.size(); ++i) {
    const double low = i == 0 ? -std::numeric_limits<double>::max() : h.limits[i - 1];
    const auto in = std::ranges::count_if(
        values, [&](float v) { return std::isfinite(v) && v >= low && v < h.limits[i]; });
    EXPECT_EQ(h.counts[i], in) << i;
    EXPECT_TRUE(i == 0 || h.counts[i] > 0 || h.counts[i - 1] > 0)
        << "two empty neighbours at " << i;
  }
}

TEST(Histograms, NoFiniteValueIsOneEmptyBucket) {
  const Histogram h = tensorflow_histogram(std::vector<float>{NAN, -INFINITY});
  EXPECT_EQ(h.num, 0);
  EXPECT_EQ(h.min, 0);
  EXPECT_EQ(h.counts, std::vector<double>{0});
}

// The figures are numpy.histogram's.
TEST(Histograms, EvenOnesAreNumpys) {
  const Histogram h = even_histogram(std::vector<float>{1, 2, 2, 3, 5, NAN}, 4);
  EXPECT_EQ(h.limits, (std::vector<double>{1, 2, 3, 4, 5}));
  EXPECT_EQ(h.counts, (std::vector<double>{1, 2, 1, 1}));
  const Histogram same = even_histogram(std::vector<float>{7, 7}, 2);
  EXPECT_EQ(same.limits, (std::vector<double>{6.5, 7, 7.5}));
  EXPECT_EQ(same.counts, (std::vector<double>{0, 2}));
  const Histogram none = even_histogram({}, 2);
  EXPECT_EQ(none.limits, (std::vector<double>{0, 0.5, 1}));
  EXPECT_THROW((void)even_histogram({}, 0), UsageError);
}

struct Boards : ::testing::Test {
  test::TempDir temp{};
  std::string folder = (temp.path() / "deep/logs").string();
};

TEST_F(Boards, EachRecordIsInTheFileWhenItsCallReturns) {
  TensorBoardWriter board(folder);
  EXPECT_THAT(board.path(), HasSubstr(folder + "/events.out.tfevents."));
  EXPECT_EQ(records_of(text_of(board.path())).size(), 1U);
  board.add_scalar("loss", 0.5, 7);
  const std::vector<std::string> records = records_of(text_of(board.path()));
  ASSERT_EQ(records.size(), 2U);
  EXPECT_THAT(records[0], HasSubstr("brain.Event:2"));
  EXPECT_THAT(records[1], HasSubstr("loss"));
}

TEST_F(Boards, WritersOfOneMomentHaveTheirOwnFiles) {
  TensorBoardWriter a(folder);
  TensorBoardWriter b(folder, {.filename_suffix = ".eval"});
  VisualDLWriter c(folder);
  VisualDLWriter d(folder);
  EXPECT_NE(a.path(), b.path());
  EXPECT_TRUE(b.path().ends_with(".eval"));
  EXPECT_NE(c.path(), d.path());
  EXPECT_THAT(d.path(), HasSubstr("vdlrecords."));
}

// What TensorBoard makes of it: tests/peers/boards.py.
TEST_F(Boards, APurgeIsReadAfterTheFilesThatAreThere) {
  TensorBoardWriter before(folder);
  const std::string ahead = folder + "/events.out.tfevents.4102444800.host.1.0";  // a clock of 2100
  std::ofstream(ahead) << "";
  const TensorBoardWriter again(folder, {.purge_step = 30});
  EXPECT_GT(again.path(), ahead);
  EXPECT_GT(again.path(), before.path());
  const TensorBoardWriter third(folder, {.purge_step = 40});
  EXPECT_GT(third.path(), again.path()) << "of the same second";
  EXPECT_EQ(records_of(text_of(again.path())).size(), 3U) << "the version, and START twice";
  EXPECT_EQ(records_of(text_of(before.path())).size(), 1U);
  EXPECT_LT(TensorBoardWriter(folder).path(), ahead) << "without a purge it is now";
  std::ofstream(folder + "/events.out.tfevents.9223372036854775807.host.1.0") << "";
  EXPECT_THAT(TensorBoardWriter(folder, {.purge_step = 0}).path(), HasSubstr(".9999999999."));
  EXPECT_THROW(TensorBoardWriter(folder, {.purge_step = -1}), UsageError);
}

TEST_F(Boards, ScalarsAreRunsBesideIt) {
  TensorBoardWriter board(folder);
  board.add_scalars("loss/all", {{"train", 1}, {"../eval", 2}}, 3);
  EXPECT_TRUE(std::filesystem::exists(folder + "/loss_all_train"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/loss_all_.._eval"));
}

TEST_F(Boards, PicturesAreOfBytesAndPngsAreChecked) {
  TensorBoardWriter board(folder);
  VisualDLWriter log(folder);
  const image::Image floats({.height = 2, .width = 2}, image::Order::kGray, image::Type::kF32);
  const std::array<uint8_t, 4> no_png{1, 2, 3, 4};
  EXPECT_THROW(board.add_image("x", floats, 0), UsageError);
  EXPECT_THROW(board.add_image("x", image::Image(), 0), UsageError);
  EXPECT_THROW(log.add_image("x", std::span<const uint8_t>(no_png), 0), UsageError);
  EXPECT_THROW(log.add_scalar("100 %", 1, 0), UsageError);
}

TEST_F(Boards, TextThatIsNoUtf8IsMadeSo) {
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(valid_utf8("\"\n\\ü"), "\"\n\\ü");
}

TEST_F(Boards, AClosedWriterTakesNothing) {
  TensorBoardWriter board(folder);
  board.close();
  board.close();
  EXPECT_THROW(board.add_scalar("x", 1, 0), UsageError);
  EXPECT_THROW(board.add_scalars("x", {}, 0), UsageError);
  VisualDLWriter log(folder);
  log.close();
  EXPECT_THROW(log.add_scalar("x", 1, 0), UsageError);
}

TEST_F(Boards, AFolderThatCannotBeMadeIsToldAtOnce) {
  EXPECT_THROW(TensorBoardWriter("/dev/null/logs"), DataError);
  EXPECT_THROW(VisualDLWriter("/dev/null/logs"), DataError);
}

// A limit on the file's size stands for a full disk.
TEST_F(Boards, AFullDiskIsToldOnceAndLeavesWholeRecords) {
  TensorBoardWriter board(folder);
  board.add_text("long", std::string(4096, 'x'), 0);  // the captured messages are files below that
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_action = std::signal(SIGXFSZ, SIG_IGN);
  const rlim_t size = text_of(board.path()).size() + 100;
  const rlimit limit{.rlim_cur = size, .rlim_max = before.rlim_max};
  testing::internal::CaptureStderr();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  for (int step = 0; step < 100; ++step) {
    board.add_scalar("a tag of some length", 1, step);
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_action);
  const std::string told = testing::internal::GetCapturedStderr();
  const size_t first = told.find("[events.tensorboard]");
  ASSERT_NE(first, std::string::npos) << told;
  EXPECT_THAT(told, HasSubstr("(EFBIG). The program continues"));
  EXPECT_EQ(told.find("[events.tensorboard]", first + 1), std::string::npos) << told;
  EXPECT_EQ(board.dropped(), 99);

  testing::internal::CaptureStderr();
  board.add_scalar("again", 1, 100);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("99 records are missing"));
  EXPECT_EQ(records_of(text_of(board.path())).size(), 4U);
  testing::internal::CaptureStderr();
  board.close();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("99 records are missing"));
}

}  // namespace
}  // namespace argosy::events
