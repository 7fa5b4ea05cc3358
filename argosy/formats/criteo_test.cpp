#include "argosy/formats/criteo.h"

#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/formats/click_truth.h"
#include "argosy/formats/digest.h"
#include "argosy/formats/test_files.h"

#include "tests/support/error_text.h"

namespace argosy::formats {
namespace {

using test::error_text;
using ::testing::HasSubstr;

std::string line_with(const std::string& first,
                      const std::string& second,
                      const std::string& last) {
  return first + "\t" + second + std::string(12, '\t') + std::string(26, '\t') + last;
}

ClickBatch read_all(const std::string& path, size_t at_once = 1000) {
  CriteoReader reader(path);
  ClickBatch all;
  while (reader.read(at_once, all) > 0) {
  }
  EXPECT_EQ(reader.lines(), static_cast<int64_t>(all.size()));
  return all;
}

TEST(Criteo, ReadsItsFields) {
  const TestFile file(line_with("1", "-3", "68fd1e64") + "\n" + line_with("0", "", "") + "\r\n" +
                      line_with("1", "123456", "ff"));  // the last line lacks its end
  const ClickBatch all = read_all(file.path(), 2);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all.clicked, (std::vector<float>{1, 0, 1}));
  EXPECT_EQ(all.numbers[0], -3);
  EXPECT_TRUE(std::isnan(all.numbers[1]));
  EXPECT_TRUE(std::isnan(all.numbers[13]));
  EXPECT_EQ(all.numbers[26], 123456);
  EXPECT_EQ(all.categories[0], 0U);
  EXPECT_EQ(all.categories[25], (uint64_t{26} << 32U) | 0x68fd1e64U);
  EXPECT_EQ(all.categories[51], 0U);
  EXPECT_EQ(all.categories[77], (uint64_t{26} << 32U) | 0xffU);
}

TEST(Criteo, PassesOverLinesWithoutLookingIntoThem) {
  const TestFile file(line_with("1", "1", "1") + "\nno such line\n" + line_with("0", "3", "") +
                      "\n");
  CriteoReader reader(file.path());
  ClickBatch batch;
  EXPECT_EQ(reader.read(1, batch), 1U);
  EXPECT_EQ(reader.skip(1), 1U);
  EXPECT_EQ(reader.read(5, batch), 1U);
  EXPECT_EQ(batch.numbers[13], 3);
  EXPECT_EQ(reader.lines(), 3);
  EXPECT_EQ(reader.skip(5), 0U);
  batch.resize(1);
  EXPECT_EQ(batch.size(), 1U);
  EXPECT_EQ(batch.numbers.size(), 13U);
  EXPECT_EQ(batch.categories.size(), 26U);
}

TEST(Criteo, LinesAreTakenAndLookedIntoLater) {
  const TestFile file(line_with("1", "1", "1") + "\n" + line_with("0", "2", "") + "\r\nno line");
  CriteoReader reader(file.path());
  ClickBatch batch;
  ClickLines lines;
  EXPECT_EQ(reader.skip(1), 1U);
  EXPECT_EQ(reader.take(1, lines), 1U);
  reader.parse(lines, batch);
  EXPECT_EQ(batch.numbers[0], 2);
  EXPECT_EQ(reader.take(5, lines), 1U);
  EXPECT_EQ(reader.lines(), 3);
  EXPECT_THAT(error_text<DataError>([&] { reader.parse(lines, batch); }), HasSubstr("line 3,"));
  EXPECT_EQ(reader.take(5, lines), 0U);
}

TEST(Criteo, ABlankLastLineIsNoLine) {
  const std::string good = line_with("1", "1", "a") + "\n";
  for (const char* blank : {"\n", "\r\n", "\r"}) {
    const TestFile file(good + good + blank);
    EXPECT_EQ(read_all(file.path()).size(), 2U);
    CriteoReader reader(file.path());
    EXPECT_EQ(reader.skip(5), 2U);
  }
  const TestFile blank_alone("\n");
  EXPECT_EQ(read_all(blank_alone.path()).size(), 0U);
}

TEST(Criteo, DrawnLinesAreTheSameEverywhere) {
  ClickTruth truth(1);
  ClickBatch drawn;
  std::string text;
  for (size_t row = 0; row < 1000; ++row) {
    truth.draw(drawn);
    append_criteo_line(drawn, row, text);
  }
  Digester digester(Digest::kMd5);
  digester.update(std::as_bytes(std::span(text)));
  EXPECT_EQ(digester.hex(), "4eb2637d50ccec5e29e6747ad3309e8f");
}

TEST(Criteo, DrawnLinesHaveTheTruthThatTheyWereDrawnBy) {
  ClickTruth truth(5);
  ClickBatch drawn;
  std::string text;
  double chances = 0;
  double clicks = 0;
  for (size_t row = 0; row < 4000; ++row) {
    truth.draw(drawn);
    append_criteo_line(drawn, row, text);
    chances += 1 / (1 + std::exp(-ClickTruth::log_odds(drawn, row)));
    clicks += static_cast<double>(drawn.clicked[row]);
  }
  const TestFile file(text);
  const ClickBatch again = read_all(file.path());
  for (size_t row = 0; row < 4000; ++row) {
    EXPECT_EQ(ClickTruth::log_odds(again, row), ClickTruth::log_odds(drawn, row));
  }
  EXPECT_NEAR(clicks, chances, 3 * std::sqrt(4000 * 0.25));
  ClickTruth same(5);
  ClickTruth other(6);
  ClickBatch first;
  ClickBatch second;
  same.draw(first);
  other.draw(second);
  EXPECT_EQ(first.categories[3], drawn.categories[3]);
  EXPECT_NE(first.categories, second.categories);
}

TEST(Criteo, WhatIsWrittenIsReadAgain) {
  std::mt19937_64 random(3);
  ClickBatch written;
  std::string text;
  for (size_t row = 0; row < 5000; ++row) {
    written.clicked.push_back(random() % 3 == 0 ? 1.0F : 0.0F);
    for (size_t i = 0; i < ClickBatch::kNumbers; ++i) {
      written.numbers.push_back(random() % 4 == 0 ? NAN : static_cast<float>(random() % 100000));
    }
    for (uint64_t i = 1; i <= ClickBatch::kCategories; ++i) {
      written.categories.push_back(random() % 5 == 0 ? 0 : i << 32U | (random() & 0xffffffffU));
    }
    append_criteo_line(written, row, text);
  }
  const TestFile file(gzip(text));
  const ClickBatch again = read_all(file.path(), 777);
  EXPECT_EQ(again.clicked, written.clicked);
  EXPECT_EQ(again.categories, written.categories);
  for (size_t i = 0; i < written.numbers.size(); ++i) {
    ASSERT_TRUE(again.numbers[i] == written.numbers[i] ||
                (std::isnan(again.numbers[i]) && std::isnan(written.numbers[i])))
        << i;
  }
}

TEST(Criteo, WrongLinesAreNamed) {
  const auto refusal = [](const std::string& text) {
    const TestFile file(text);
    return error_text<DataError>([&] { (void)read_all(file.path()); });
  };
  const std::string good = line_with("1", "1", "a") + "\n";
  EXPECT_THAT(refusal(good + line_with("2", "1", "a")),
              HasSubstr("line 2, column 1: expected 0 or 1, got \"2\""));
  EXPECT_THAT(refusal(line_with("1", "1.5", "a")),
              HasSubstr("line 1, column 2: expected a whole number, got \"1.5\""));
  EXPECT_THAT(refusal(line_with("1", "1", "123456789")),
              HasSubstr("column 40: expected up to 8 hexadecimal digits"));
  EXPECT_THAT(refusal(line_with("1", "1", "xyz")), HasSubstr("got \"xyz\""));
  EXPECT_THAT(refusal(line_with("1", "1", "a") + "\t"), HasSubstr("expected 40 fields"));
  EXPECT_THAT(refusal("1\t2\t3\n"), HasSubstr("column 3: expected 40 fields"));
  EXPECT_THAT(refusal(good + "\n" + good), HasSubstr("line 2, column 1: expected 40 fields"));
  EXPECT_THAT(refusal(std::string(300'000, '1')), HasSubstr("a line of at most 65536 bytes"));
}

}  // namespace
}  // namespace argosy::formats
