#include "argosy/formats/csv.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/formats/damage_test_support.h"
#include "argosy/formats/test_files.h"

namespace argosy::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Rows = std::vector<std::vector<std::string>>;

Rows read_all(const std::string& path, CsvOptions options = {}) {
  CsvReader table(path, options);
  Rows rows{table.header()};
  while (table.next()) {
    rows.emplace_back(table.fields().begin(), table.fields().end());
  }
  return rows;
}

Rows rows_of(const std::string& text, CsvOptions options = {}) {
  return read_all(TestFile(text).path(), options);
}

DataError error_of(const std::string& text, CsvOptions options = {}) {
  const TestFile file(text, "table.csv");
  try {
    (void)read_all(file.path(), options);
  } catch (const DataError& error) {
    EXPECT_EQ(error.place().path, file.path());
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return DataError("test", "nothing");
}

TEST(Csv, LineEndsOfAllKindsGiveTheSame) {
  const Rows expected{{"a", "b"}, {"1", "2"}, {"", "4"}};
  for (const char* text : {"a,b\n1,2\n,4\n",
                           "a,b\r\n1,2\r\n,4\r\n",
                           "a,b\n1,2\n,4",
                           "a,b\r\n1,2\n,4\r\n",
                           "\xef\xbb\xbf\x61,b\n1,2\n,4\n",
                           "\na,b\n\n1,2\r\n\r\n,4\n\n"}) {
    EXPECT_EQ(rows_of(text), expected) << text;
    EXPECT_EQ(rows_of(gzip(text)), expected) << text;
  }
}

TEST(Csv, QuotedFieldsHoldSeparatorsQuotesAndLineEnds) {
  const Rows rows =
      rows_of("name,\"x,y\"\n\"a \"\"b\"\"\",\"two\r\nlines, one field\"\n\"\",\"\"\"\"\n");
  EXPECT_THAT(rows[0], ElementsAre("name", "x,y"));
  EXPECT_THAT(rows[1], ElementsAre("a \"b\"", "two\r\nlines, one field"));
  EXPECT_THAT(rows[2], ElementsAre("", "\""));
}

TEST(Csv, LinesAreCountedAcrossQuotedLineEnds) {
  const DataError error = error_of("a,b\n\"1\n\n1\",2\n\n3\n");
  EXPECT_THAT(error.what(), HasSubstr("line 6: expected 2 fields as the header has, got 1"));
  EXPECT_EQ(error.place().index, 1);
}

TEST(Csv, AnotherSeparatorLeavesCommasAlone) {
  EXPECT_THAT(rows_of("a;b\n1,5;2\n", {.separator = ';'})[1], ElementsAre("1,5", "2"));
}

TEST(Csv, RowsLongerThanTheBufferAreWhole) {
  const std::string wide(700'000, 'x');
  const std::string quoted =
      "\"" + std::string(300'000, 'y') + "\n" + std::string(300'000, 'z') + "\"";
  std::string text = "a,b\n";
  for (int i = 0; i < 5; ++i) {
    text += std::to_string(i) + "," + (i % 2 == 0 ? wide : quoted) + "\n";
  }
  const Rows rows = rows_of(text);
  ASSERT_EQ(rows.size(), 6U);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(rows[i + 1][0], std::to_string(i));
    EXPECT_EQ(rows[i + 1][1], i % 2 == 0 ? wide : quoted.substr(1, quoted.size() - 2));
  }
}

TEST(Csv, ManyRowsAcrossManyBuffers) {
  std::string text = "n,square\n";
  for (int i = 0; i < 100'000; ++i) {
    text += std::to_string(i) + "," + std::to_string(i * 7) + "\r\n";
  }
  const TestFile file(text);
  CsvReader table(file.path());
  int n = 0;
  for (; table.next(); ++n) {
    ASSERT_EQ(table.fields()[0], std::to_string(n));
    ASSERT_EQ(table.fields()[1], std::to_string(n * 7));
    ASSERT_EQ(table.row(), n);
  }
  EXPECT_EQ(n, 100'000);
  EXPECT_FALSE(table.next());  // stays at the end
}

TEST(Csv, ColumnsAreFoundByName) {
  const TestFile file("a,b\n1,2\n");
  const CsvReader table(file.path());
  EXPECT_EQ(table.column("b"), 1U);
  EXPECT_EQ(table.column("c"), std::nullopt);
}

TEST(Csv, AColumnsErrorNamesLineNumberAndName) {
  const TestFile file("a,b\n1,2\n3,4\n");
  CsvReader table(file.path());
  table.next();
  table.next();
  EXPECT_STREQ(
      table.error(1, "expected 5, got 4").what(),
      ("[formats.csv] " + file.path() + ": line 3: column 2 (\"b\"): expected 5, got 4 (sample 1)")
          .c_str());
}

TEST(Csv, ExpectedRowsAreNearTheTruth) {
  std::string text = "a,b\n";
  for (int i = 0; i < 50'000; ++i) {
    text += "12345,67890\n";
  }
  for (const std::string& content : {text, gzip(text)}) {
    const TestFile file(content);
    CsvReader table(file.path());
    table.next();
    EXPECT_LE(table.expected_rows(), 9U);  // never more than eight times what was seen
    for (int i = 1; i < 30'000; ++i) {
      table.next();
    }
    EXPECT_GT(table.expected_rows(), 30'000U);
    EXPECT_LT(table.expected_rows(), 60'000U);
  }
}

TEST(Csv, AnEmptyFileHasNoHeader) {
  for (const char* text : {"", "\n\r\n\n", "\xef\xbb\xbf"}) {
    EXPECT_THAT(error_of(text).what(), HasSubstr("empty: expected a row with the columns' names"));
  }
}

TEST(Csv, BrokenQuotesAreNamedWithTheirLine) {
  EXPECT_THAT(error_of("a,b\n1,2\n\"3,4\n5,6\n").what(),
              HasSubstr("line 3: a quote is opened in this row and never closed"));
  EXPECT_THAT(error_of("a,b\n\"1\"x,2\n").what(),
              HasSubstr("line 2: field 1 continues after its closing quote"));
  EXPECT_THAT(error_of("a,b\n1,2\"\"\n").what(), HasSubstr("line 2: field 2 has a quote, but"));
  EXPECT_THAT(error_of("a,b\n\"1\"\"\n").what(), HasSubstr("never closed"));
}

TEST(Csv, RowsOfAnotherLengthAndNamesTwiceAreErrors) {
  EXPECT_THAT(error_of("a,b\n1,2,3\n").what(), HasSubstr("line 2: expected at most 2 fields"));
  EXPECT_THAT(error_of("a,b\n1,\"2\",\n").what(), HasSubstr("line 2: expected at most 2 fields"));
  EXPECT_THAT(error_of("a,b,a\n").what(),
              HasSubstr("line 1: the header names the column \"a\" twice"));
}

TEST(Csv, LimitsEndWhatHasNoEnd) {
  const std::string endless(3'000'000, 'x');
  EXPECT_THAT(error_of("a\n" + endless, {.most_row_bytes = 1'000'000}).what(),
              HasSubstr("line 2: the row has more than 1000000 bytes"));
  EXPECT_THAT(error_of("a\nxx\nxxxx\n", {.most_row_bytes = 3}).what(),
              HasSubstr("line 3: the row has more than 3 bytes"));
  EXPECT_THAT(error_of(std::string(70'000, ',')).what(), HasSubstr("at most 65536 fields"));
  std::string bomb = "a\n";
  bomb.append(1'000'000, '\n');
  EXPECT_THAT(error_of(gzip(bomb), {.most_bytes = 100'000}).what(),
              HasSubstr("more than 100000 bytes of text when unpacked"));
}

const std::string& sound() {
  static const std::string text =
      "name,\"left, x\",note\r\nanna,12.5,\"says \"\"no\"\"\"\r\nbob,,\"two\nlines\"\n" +
      std::string(300, 'c') + ",3,\n";
  return text;
}

TEST(Csv, TruncatedAnywhereItEndsCleanly) {
  const auto read = [](const std::string& path) { (void)read_all(path); };
  const Damage plain = truncate_everywhere(sound(), read);
  EXPECT_GT(plain.refused, 10);
  EXPECT_EQ(plain.accepted + plain.refused, 200);
  // One byte is not enough to tell gzip from a column of that name.
  EXPECT_EQ(truncate_everywhere(gzip(sound()), read).accepted, 1);
}

TEST(Csv, BytesChangedAtRandomNeverBreakIt) {
  const auto read = [](const std::string& path) { (void)read_all(path); };
  EXPECT_GT(flip_at_random(sound(), read).refused, 100);
  EXPECT_GT(flip_at_random(gzip(sound()), read).refused, 9'000);
}

}  // namespace
}  // namespace argosy::formats
