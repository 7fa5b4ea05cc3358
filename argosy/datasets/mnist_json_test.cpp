#include "argosy/datasets/mnist_json.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/formats/damage_test_support.h"
#include "argosy/formats/test_files.h"

namespace argosy::datasets {
namespace {

using formats::flip_at_random;
using formats::gzip;
using formats::TestFile;
using formats::truncate_everywhere;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kSmall =
    R"([[[[0.0, 0.5], [1, -2.5e-1]], [3, 9]], [[[4, 5]], [0]], [[], []]])";

MnistJsonSplits read(const std::string& text, MnistJsonOptions options = {.pixels = 2}) {
  return read_mnist_json(TestFile(text).path(), options);
}

DataError error_of(const std::string& text, MnistJsonOptions options = {.pixels = 2}) {
  const TestFile file(text, "mnist.json");
  try {
    (void)read_mnist_json(file.path(), options);
  } catch (const DataError& error) {
    EXPECT_EQ(error.place().path, file.path());
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return DataError("test", "nothing");
}

std::string words(const std::string& text, MnistJsonOptions options = {.pixels = 2}) {
  return error_of(text, options).what();
}

TEST(MnistJson, ReadsTheThreeSplitsPlainAndGzip) {
  for (const std::string& text : {std::string(kSmall), gzip(kSmall)}) {
    const MnistJsonSplits digits = read(text);
    EXPECT_EQ(digits.train.size(), 2);
    EXPECT_THAT(digits.train.values, ElementsAre(0, 0.5F, 1, -0.25F));
    EXPECT_THAT(digits.train.labels, ElementsAre(3, 9));
    EXPECT_THAT(digits.valid.values, ElementsAre(4, 5));
    EXPECT_THAT(digits.valid.labels, ElementsAre(0));
    EXPECT_EQ(digits.test.size(), 0);
  }
}

TEST(MnistJson, WhiteSpaceIsAllowedWhereJsonAllowsIt) {
  const MnistJsonSplits digits = read(
      " \n[ [\t[ [ 1 ,\r\n 2 ] ] , [ 7 ] ] , [ [ ] , [ ] ] , [ [ [ 3 , 4 ] ] , [ 8 ] ] ] \n\n");
  EXPECT_THAT(digits.train.values, ElementsAre(1, 2));
  EXPECT_THAT(digits.test.values, ElementsAre(3, 4));
  EXPECT_THAT(digits.test.labels, ElementsAre(8));
}

TEST(MnistJson, UnwantedSplitsArePassedOver) {
  const MnistJsonSplits digits = read(kSmall, {.pixels = 2, .train = false, .test = false});
  EXPECT_EQ(digits.train.size(), 0);
  EXPECT_TRUE(digits.train.values.empty());
  EXPECT_THAT(digits.valid.values, ElementsAre(4, 5));
}

TEST(MnistJson, AWrongImageIsNamedWithItsSplit) {
  const DataError error = error_of("[[[[1,2],[1,2]],[0,0]],[[[1,2],[3]],[0,0]],[[],[]]]");
  EXPECT_THAT(error.what(), HasSubstr("valid, image 1: expected 2 numbers, got 1"));
  EXPECT_EQ(error.place().index, 1);
  EXPECT_EQ(error.place().offset, 31);  // where the list [3] begins
  EXPECT_THAT(words("[[[[1,2,3]],[0]],[[],[]],[[],[]]]"),
              HasSubstr("train, image 0: expected 2 numbers, got 3"));
  EXPECT_THAT(words("[[[[1,\"2\"]],[0]],[[],[]],[[],[]]]"),
              HasSubstr("train, image 0: number 1: expected a number"));
  EXPECT_THAT(words("[[[[1,1e99]],[0]],[[],[]],[[],[]]]"),
              HasSubstr("number 1: too large for a float"));
  EXPECT_THAT(words("[[[[1 2]],[0]],[[],[]],[[],[]]]"), HasSubstr("number 1: expected a number"));
  EXPECT_THAT(words("[[[[1,]],[0]],[[],[]],[[],[]]]"), HasSubstr("number 1: expected a number"));
  EXPECT_THAT(words("[[[[nan,1]],[0]],[[],[]],[[],[]]]"), HasSubstr("number 0: expected a number"));
  EXPECT_THAT(words("[[[1,2],[0]],[[],[]],[[],[]]]"),
              HasSubstr("train, image 0: expected '[', a list of numbers, got '1'"));
}

TEST(MnistJson, WrongLabelsAreNamed) {
  const DataError error = error_of("[[[[1,2],[1,2]],[0,10]],[[],[]],[[],[]]]");
  EXPECT_THAT(error.what(),
              HasSubstr("train, image 1: number 1: expected labels, whole numbers 0 to 9"));
  EXPECT_EQ(error.place().index, 1);
  EXPECT_THAT(words("[[[[1,2]],[-1]],[[],[]],[[],[]]]"), HasSubstr("whole numbers 0 to 9"));
  EXPECT_THAT(words("[[[[1,2]],[1.5]],[[],[]],[[],[]]]"), HasSubstr("whole numbers 0 to 9"));
  EXPECT_THAT(words("[[[[1,2]],[]],[[],[]],[[],[]]]"),
              HasSubstr("train: expected 1 labels as there are images, got 0"));
  EXPECT_THAT(words("[[[[1,2]],[1,2]],[[],[]],[[],[]]]"), HasSubstr("got 2"));
  EXPECT_EQ(
      read("[[[[1,2]],[255]],[[],[]],[[],[]]]", {.pixels = 2, .classes = 256}).train.labels[0],
      255);
}

TEST(MnistJson, MissingAndSurplusSplitsAreNamed) {
  EXPECT_THAT(words("[[[],[]],[[],[]]]"),
              HasSubstr("expected three splits [train, valid, test], got 2: test is missing"));
  EXPECT_THAT(words("[]"), HasSubstr("got 0: train is missing"));
  EXPECT_THAT(words("[[[],[]],[[],[]],[[],[]],[[],[]]]"),
              HasSubstr("expected ']', the end of the three splits, got ','"));
  EXPECT_THAT(words("[[[],[]],[[],[]],[[],[]]] x"), HasSubstr("expected nothing more, got 'x'"));
  EXPECT_THAT(words("[[[]],[[],[]],[[],[]]]"),
              HasSubstr("train: expected ',', and then the labels, got ']'"));
  EXPECT_THAT(
      words("[[[],[],[]],[[],[]],[[],[]]]"),
      HasSubstr("train: expected ']', the end of the split: images, labels and nothing else"));
  EXPECT_THAT(words("{\"train\": []}"), HasSubstr("expected '[', the list of splits, got '{'"));
  EXPECT_THAT(words(""), HasSubstr("got the end of the file"));
  EXPECT_THAT(words("\x01"), HasSubstr("got byte 0x01"));
}

TEST(MnistJson, AZeroByteIsNotTheEnd) {
  const std::string zero(1, '\0');
  EXPECT_THAT(words(kSmall + zero), HasSubstr("expected nothing more, got byte 0x00"));
  EXPECT_THAT(words(kSmall + zero + "garbage"), HasSubstr("got byte 0x00"));
  EXPECT_THAT(words("[" + zero), HasSubstr("got byte 0x00"));
  EXPECT_THAT(words("["), HasSubstr("got the end of the file"));
}

TEST(MnistJson, OffsetsOfPackedFilesSaySo) {
  EXPECT_THAT(words(gzip("[[[[1]],[0]],[[],[]],[[],[]]]")),
              HasSubstr("got 1, in the unpacked text"));
}

TEST(MnistJson, EndlessListsAndBombsEndAtALimit) {
  const std::string endless(2'000'000, '1');
  EXPECT_THAT(words("[[[[" + endless), HasSubstr("a list of numbers with more than 4224 bytes"));
  EXPECT_THAT(words("[[[],[" + endless), HasSubstr("more than 4096 bytes"));
  const std::string bomb = gzip(std::string(3'000'000, ' '));
  EXPECT_THAT(words(bomb, {.pixels = 2, .most_bytes = 1'000'000}),
              HasSubstr("more than 1000000 bytes of text"));
}

TEST(MnistJson, ImagesAcrossBuffersAreWhole) {
  std::string text = "[[[";
  for (int i = 0; i < 20'000; ++i) {
    text += (i == 0 ? "[" : ", [") + std::to_string(i) + ".0, 0.125]";
  }
  text += "], [1";
  for (int i = 1; i < 20'000; ++i) {
    text += ", 1";
  }
  text += "]], [[], []], [[], []]]";
  const MnistJsonSplits digits = read(text);
  ASSERT_EQ(digits.train.size(), 20'000);
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_EQ(digits.train.values[2 * i], static_cast<float>(i));
    ASSERT_EQ(digits.train.values[2 * i + 1], 0.125F);
  }
}

TEST(MnistJson, OptionsAreChecked) {
  EXPECT_THROW((void)read(kSmall, {.pixels = 0}), UsageError);
  EXPECT_THROW((void)read(kSmall, {.classes = 257}), UsageError);
}

TEST(MnistJson, ReadsRealDigits) {
  const MnistJsonSplits digits = read_mnist_json(ARGOSY_TEST_DATA "/mnist/mnist.json.gz");
  EXPECT_EQ(digits.train.size(), 80);
  EXPECT_EQ(digits.valid.size(), 40);
  EXPECT_EQ(digits.test.size(), 40);
  EXPECT_THAT(std::vector<int>(digits.train.labels.begin(), digits.train.labels.begin() + 5),
              ElementsAre(5, 0, 4, 1, 9));
  EXPECT_EQ(digits.train.values[152], 3.0F / 256);
  EXPECT_EQ(digits.train.values[156], 126.0F / 256);
}

#ifdef ARGOSY_SHARED_DATA  // real sets are beside the repository
TEST(MnistJson, ReadsTheSharedFile) {
  const std::string path = ARGOSY_SHARED_DATA "/mnist/mnist.json.gz";
  const MnistJsonSplits digits = read_mnist_json(path);
  EXPECT_EQ(digits.train.size(), 4000);
  EXPECT_EQ(digits.valid.size(), 1000);
  EXPECT_EQ(digits.test.size(), 1000);
  // By Python's json and NumPy.
  EXPECT_NEAR(std::accumulate(digits.train.values.begin(), digits.train.values.end(), 0.0),
              404944.992188,
              1e-3);
}
#endif

TEST(MnistJson, TruncatedAnywhereItIsADataError) {
  const auto read_it = [](const std::string& path) { (void)read_mnist_json(path, {.pixels = 2}); };
  EXPECT_EQ(truncate_everywhere(kSmall, read_it).accepted, 0);
  std::ifstream in(ARGOSY_TEST_DATA "/mnist/mnist.json.gz", std::ios::binary);
  const std::string packed(std::istreambuf_iterator<char>(in), {});
  EXPECT_EQ(
      truncate_everywhere(packed, [](const std::string& path) { (void)read_mnist_json(path); })
          .accepted,
      0);
}

TEST(MnistJson, BytesChangedAtRandomNeverBreakIt) {
  const auto read_it = [](const std::string& path) { (void)read_mnist_json(path, {.pixels = 2}); };
  EXPECT_GT(flip_at_random(kSmall, read_it).refused, 8'000);
  EXPECT_GT(flip_at_random(gzip(kSmall), read_it).refused, 9'000);
}

}  // namespace
}  // namespace argosy::datasets
