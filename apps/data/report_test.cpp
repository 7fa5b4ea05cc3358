#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/datasets/sets.h"
#include "argosy/datasets/survey.h"
#include "argosy/formats/packed_sample.h"
#include "argosy/formats/records.h"

#include "apps/data/chart.h"
#include "apps/data/info_report.h"
#include "tests/support/temp_dir.h"
#include <nlohmann/json.hpp>

namespace argosy::datatool {
namespace {

using runs::Bar;
using testing::HasSubstr;
namespace fs = std::filesystem;

TEST(BarChart, DrawsEighthsOrPlainSigns) {
  const std::vector<Bar> bars{{"cat", 8}, {"a dog", 3}, {"", 0}};
  EXPECT_EQ(bar_chart(bars, 15, BarStyle::kPlain),
            "cat   8 #######\n"
            "a dog 3 ###\n"
            "      0\n");
  EXPECT_EQ(bar_chart(bars, 15, BarStyle::kBlocks),
            "cat   8 ███████\n"
            "a dog 3 ██▋\n"
            "      0\n");
}

TEST(BarChart, LongNamesAndNarrowTerminalsBreakNothing) {
  EXPECT_EQ(bar_chart({{"a name that is long", 1000}}, 24, BarStyle::kPlain),
            "a name t 1,000 #########\n");
  EXPECT_EQ(bar_chart({{"für", 7}}, 0, BarStyle::kPlain), "f 7 #\n");
  EXPECT_EQ(bar_chart({{"zero", 0}}, 40, BarStyle::kPlain), "zero 0\n");
}

/// 12 images of 1 × 2 pixels with labels 0 to 2.
class InfoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string header("\0\0\x08\x03\0\0\0\x0c\0\0\0\x01\0\0\0\x02", 16);
    std::ofstream(folder_.path() / "train-images-idx3-ubyte") << header << std::string(24, '\x33');
    std::ofstream labels(folder_.path() / "train-labels-idx1-ubyte");
    labels << std::string("\0\0\x08\x01\0\0\0\x0c", 8);
    for (int i = 0; i < 12; ++i) {
      labels << static_cast<char>(i % 3);
    }
    labels.close();
    source_ = datasets::open("mnist", {.path = folder_.path().string()});
    findings_ = {.source = source_.get(), .survey = datasets::survey(*source_)};
  }
  test::TempDir folder_{};
  std::shared_ptr<const datasets::Source> source_{};
  Findings findings_{};
};

TEST_F(InfoTest, JsonHasWhatAProgramWants) {
  const auto json = nlohmann::json::parse(info_json(findings_).dump());
  EXPECT_EQ(json.at("samples"), 12);
  EXPECT_EQ(json.at("classes"), 10);
  EXPECT_EQ(json.at("per_class"), nlohmann::json({4, 4, 4, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(json.at("shape"), nlohmann::json({1, 2, 1}));
  EXPECT_EQ(json.at("values"), nlohmann::json({0x33, 0x33}));
  EXPECT_EQ(json.at("splits").at("train"), 12);
  findings_.survey.width.most = 5;
  EXPECT_EQ(info_json(findings_).at("shape").at(1), nullptr);
}

TEST_F(InfoTest, TextSaysTheSame) {
  const std::string text = info_text(findings_, 40, BarStyle::kPlain);
  EXPECT_THAT(text, HasSubstr("  samples   12: train 12\n"));
  EXPECT_THAT(text, HasSubstr("  pictures  1 x 2 pixels, 1 channel\n"));
  EXPECT_THAT(text, HasSubstr("  values    51; in [0, 1]: mean 0.2000, std 0.0000\n"));
  EXPECT_THAT(text, HasSubstr("\n0 - zero  4 ###########################"));
}

TEST_F(InfoTest, ManyUnusableSamplesAreNamedAndTheRestCounted) {
  findings_.survey.unusable = 1234;
  findings_.survey.first_unusable = {"record 3 is damaged", "record 5 is damaged"};
  EXPECT_THAT(info_text(findings_, 80, BarStyle::kPlain),
              HasSubstr("  unusable  1,234 samples:\n"
                        "            record 3 is damaged\n"
                        "            record 5 is damaged\n"
                        "            and 1,232 more\n"));
}

TEST_F(InfoTest, NamesOfAFileDoNotSteerTheTerminal) {
  const std::string path = (folder_.path() / "own.rec").string();
  formats::RecordWriter writer(
      path, formats::pack_metadata({.kind = "\x1b[2J", .classes = {"f\u00fcr \x1b]0;title\x07"}}));
  writer.finish();
  const auto source = datasets::open("records", {.path = path});
  const std::string text = info_text(
      {.source = source.get(), .survey = datasets::survey(*source)}, 80, BarStyle::kPlain);
  EXPECT_THAT(text, HasSubstr("records of \\x1b[2J in "));
  EXPECT_THAT(text, HasSubstr("f\u00fcr \\x1b]0;title\\x07"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST_F(InfoTest, ThePageShowsTheSamples) {
  const runs::PicturePage sheet = info_sheet(findings_);
  ASSERT_EQ(sheet.pictures.size(), 12U);
  EXPECT_EQ(sheet.pictures[0].caption, "0 - zero");
  EXPECT_EQ(sheet.pictures[11].caption, "2 - two");
  EXPECT_EQ(sheet.pictures[0].width, 2);
  EXPECT_EQ(sheet.note, "12 samples, 10 classes");
  EXPECT_EQ(sheet.bars.size(), 10U);
  EXPECT_EQ(sheet.bars[0].value, 4);
}

}  // namespace
}  // namespace argosy::datatool
