#include "argosy/formats/mat.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/formats/damage_test_support.h"
#include "argosy/formats/test_files.h"
#include "argosy/formats/test_mat.h"

namespace argosy::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kDouble = 6;
constexpr uint32_t kU8Type = 2;

MatFile read(const std::string& content, MatOptions options = {}) {
  return read_mat(TestFile(content).path(), options);
}

DataError error_of(const std::string& content, MatOptions options = {}) {
  const TestFile file(content, "labels.mat");
  try {
    (void)read_mat(file.path(), options);
  } catch (const DataError& error) {
    EXPECT_EQ(error.place().path, file.path());
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return DataError("test", "nothing");
}

TEST(Mat, BothByteOrdersPackedOrNotGiveTheSame) {
  for (const std::endian order : {std::endian::little, std::endian::big}) {
    for (const bool small : {true, false}) {
      MatWriter out(order);
      out.small = small;
      const std::string a = out.matrix(kDouble, {2, 3}, "a", 2, "\x01\x02\x03\x04\x05\x06");
      const std::string b =
          out.matrix(kDouble, {1, 2}, "long name", 9, out.numbers<double>({0.5, -1e300}));
      for (const std::string& content :
           {out.header() + a + b, out.header() + out.compressed(a) + out.compressed(b)}) {
        const MatFile file = read(content);
        ASSERT_EQ(file.arrays.size(), 2U);
        EXPECT_THAT(file.at("a").dims, ElementsAre(2, 3));
        EXPECT_THAT(file.at("a").integers(), ElementsAre(1, 2, 3, 4, 5, 6));
        EXPECT_THAT(file.at("a").doubles(), ElementsAre(1, 2, 3, 4, 5, 6));
        EXPECT_THAT(file.at("long name").doubles(), ElementsAre(0.5, -1e300));
      }
    }
  }
}

TEST(Mat, EveryTypeOfNumberIsRead) {
  const MatWriter out(std::endian::big);
  const auto integers = [&](uint32_t array_class, uint32_t type, const std::string& data) {
    return read(out.header() + out.matrix(array_class, {1, 2}, "v", type, data)).at("v").integers();
  };
  EXPECT_THAT(integers(8, 1, out.numbers<int8_t>({-128, 127})), ElementsAre(-128, 127));
  EXPECT_THAT(integers(9, 2, out.numbers<uint8_t>({0, 255})), ElementsAre(0, 255));
  EXPECT_THAT(integers(10, 3, out.numbers<int16_t>({-32768, 1})), ElementsAre(-32768, 1));
  EXPECT_THAT(integers(11, 4, out.numbers<uint16_t>({1, 65535})), ElementsAre(1, 65535));
  EXPECT_THAT(integers(12, 5, out.numbers<int32_t>({-2147483647, 1})), ElementsAre(-2147483647, 1));
  EXPECT_THAT(integers(13, 6, out.numbers<uint32_t>({1, 4294967295})), ElementsAre(1, 4294967295));
  EXPECT_THAT(integers(14, 12, out.numbers<int64_t>({INT64_MIN, 1})), ElementsAre(INT64_MIN, 1));
  EXPECT_THAT(integers(15, 13, out.numbers<uint64_t>({1, INT64_MAX})), ElementsAre(1, INT64_MAX));
  EXPECT_THAT(integers(7, 7, out.numbers<float>({-3, 16777216})), ElementsAre(-3, 16777216));
  EXPECT_THAT(integers(6, 9, out.numbers<double>({-3, 9007199254740992})),
              ElementsAre(-3, 9007199254740992));
}

TEST(Mat, NumbersThatAreNotWholeAreNamed) {
  const MatWriter out(std::endian::little);
  for (const double bad : {1.5, 1e17, std::numeric_limits<double>::quiet_NaN(), -HUGE_VAL}) {
    const MatFile file =
        read(out.header() + out.matrix(kDouble, {2, 1}, "ids", 9, out.numbers<double>({1, bad})));
    try {
      (void)file.at("ids").integers();
      ADD_FAILURE() << bad;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("\"ids\": expected whole numbers, got "));
      EXPECT_EQ(error.place().index, 1);
    }
  }
  const MatFile file = read(out.header() + out.matrix(15, {1, 1}, "v", 13, out.number(UINT64_MAX)));
  EXPECT_THROW((void)file.at("v").integers(), DataError);
}

TEST(Mat, NumbersStayAsNarrowAsTheFileHasThem) {
  const MatWriter out(std::endian::little);
  const MatFile file =
      read(out.header() + out.compressed(out.matrix(9, {2, 2}, "X", kU8Type, "\x01\x02\x03\xff")) +
           out.matrix(kDouble, {1, 2}, "y", 3, out.numbers<int16_t>({-1, 300})));
  EXPECT_THAT(std::get<std::vector<uint8_t>>(file.at("X").values), ElementsAre(1, 2, 3, 255));
  EXPECT_THAT(std::get<std::vector<int16_t>>(file.at("y").values), ElementsAre(-1, 300));
}

TEST(Mat, MoreThan64MiBAreRead) {
  const MatWriter out(std::endian::little);
  std::string bytes(65 << 20, '\7');
  bytes.back() = '\x09';
  const MatFile file =
      read(out.header() + out.compressed(out.matrix(9, {65 << 10, 1 << 10}, "X", kU8Type, bytes)));
  EXPECT_EQ(file.at("X").size(), 65 << 20);
  EXPECT_EQ(std::get<std::vector<uint8_t>>(file.at("X").values).back(), 9);
}

TEST(Mat, EmptyArraysAreEmpty) {
  const MatWriter out(std::endian::little);
  const MatFile file = read(out.header() + out.matrix(kDouble, {0, 7}, "none", 9, ""));
  EXPECT_EQ(file.at("none").size(), 0);
  EXPECT_TRUE(read(out.header()).arrays.empty());
}

TEST(Mat, OtherVariablesAreNamedAndPassedOver) {
  const MatWriter out(std::endian::little);
  const MatFile file = read(out.header() + out.matrix(2, {1, 1}, "s", 5, out.number(uint32_t{4})) +
                            out.matrix(4, {1, 2}, "text", 4, out.numbers<uint16_t>({65, 66})) +
                            out.matrix(kDouble | 0x0800, {1, 1}, "z", 9, out.number(1.0)) +
                            out.matrix(kDouble, {1, 1}, "n", 2, "\x05"));
  EXPECT_THAT(file.at("n").integers(), ElementsAre(5));
  ASSERT_EQ(file.others.size(), 3U);
  EXPECT_EQ(file.others[1].kind, "text");
  try {
    (void)file.at("s");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"s\" is a struct: expected an array of real numbers"));
  }
  try {
    (void)file.at("m");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no variable \"m\": the arrays in it are n"));
  }
}

TEST(Mat, OtherFormatsAreNamed) {
  EXPECT_THAT(error_of("MATLAB 7.3 MAT-file, Platform: GLNXA64").what(),
              HasSubstr("Save it with -v7"));
  EXPECT_THAT(error_of("\x89HDF\r\n").what(), HasSubstr("MATLAB 7.3"));
  EXPECT_THAT(error_of("").what(), HasSubstr("not a MATLAB 5 file"));
  EXPECT_THAT(error_of(std::string(500, '\0')).what(), HasSubstr("not a MATLAB 5 file"));
}

TEST(Mat, LengthsThatLieAllocateNothing) {
  const MatWriter out(std::endian::little);
  const MemoryLimit limit;
  const auto with_length = [&](uint32_t type, uint32_t bytes) {
    return out.header() + out.number(type) + out.number(bytes) + std::string(64, '\0');
  };
  EXPECT_THAT(error_of(with_length(14, 0xfffffff0)).what(),
              HasSubstr("torn or damaged: a variable of 4294967280 bytes where 64 are"));
  EXPECT_THAT(error_of(with_length(15, 0xfffffff0)).what(), HasSubstr("torn or damaged"));
  const std::string wide = out.matrix(kDouble, {0x7fffffff, 0x7fffffff}, "w", 9, out.number(1.0));
  EXPECT_THAT(error_of(out.header() + wide).what(),
              HasSubstr("damaged: 8 bytes of type 9 for 2147483647 x 2147483647 numbers (\"w\")"));
  const std::string overflow =
      out.matrix(kDouble, {0x7fffffff, 0x7fffffff, 4, 2, 1}, "w", 9, out.number(1.0));
  EXPECT_THAT(error_of(out.header() + overflow).what(), HasSubstr("damaged: 8 bytes"));
  const std::string negative = out.matrix(kDouble, {-1, -1}, "w", 9, out.number(1.0));
  EXPECT_THAT(error_of(out.header() + negative).what(), HasSubstr("dimensions -1 x -1"));
}

TEST(Mat, ACompressedBombEndsAtTheLimit) {
  const MatWriter out(std::endian::little);
  const std::string zeros(5'000'000, '\0');
  const std::string bomb = out.compressed(out.matrix(kDouble, {5'000'000, 1}, "z", kU8Type, zeros));
  EXPECT_THAT(error_of(out.header() + bomb, {.most_bytes = 1'000'000}).what(),
              HasSubstr("more than 1000000 bytes. If that is right, raise MatOptions::most_bytes"));
  EXPECT_EQ(read(out.header() + bomb).at("z").size(), 5'000'000);
  EXPECT_THAT(
      error_of(out.header() + std::string(2'000'000, '\0'), {.most_bytes = 1'000'000}).what(),
      HasSubstr("more than 1000000 bytes"));
}

TEST(Mat, DamageInACompressedVariableNamesBothPlaces) {
  const MatWriter out(std::endian::little);
  const std::string matrix = out.matrix(kDouble, {2, 2}, "m", kU8Type, "abc");
  const DataError error = error_of(out.header() + out.compressed(matrix));
  EXPECT_THAT(error.what(), HasSubstr("of the unpacked variable"));
  EXPECT_EQ(error.place().offset, 128);
  EXPECT_THAT(error_of(out.header() + out.compressed(matrix + matrix)).what(),
              HasSubstr("damaged"));
  const std::string good = out.matrix(kDouble, {1, 3}, "m", kU8Type, "abc");
  EXPECT_THAT(error_of(out.header() + out.compressed(good + good)).what(),
              HasSubstr("a compressed variable continues after its end"));
  EXPECT_THAT(error_of(out.header() + out.compressed("")).what(),
              HasSubstr("torn: expected a variable"));
}

TEST(Mat, BytesBehindACompressedVariableAreAnError) {
  const MatWriter out(std::endian::native);
  std::string element = out.compressed(out.matrix(kDouble, {1, 1}, "a", kU8Type, "\x01"));
  const auto size = static_cast<uint32_t>(element.size() - 8 + 3);
  element.replace(4, 4, out.number(size));
  EXPECT_THAT(error_of(out.header() + element + "xyz").what(), HasSubstr("bytes follow it"));
}

TEST(Mat, ANameTwiceIsAnError) {
  const MatWriter out(std::endian::little);
  const std::string one = out.matrix(kDouble, {1, 1}, "v", kU8Type, "a");
  EXPECT_THAT(error_of(out.header() + one + one).what(), HasSubstr("two variables \"v\""));
}

std::string sound(std::endian order) {
  const MatWriter out(order);
  return out.header() +
         out.matrix(kDouble, {1, 4}, "plain", 4, out.numbers<uint16_t>({1, 2, 3, 4})) +
         out.compressed(
             out.matrix(kDouble, {2, 2}, "packed", 9, out.numbers<double>({1, 2, 3, 4}))) +
         out.matrix(2, {1, 1}, "other", 5, out.number(uint32_t{4}));
}

TEST(Mat, TruncatedAnywhereItIsADataErrorOrHasLess) {
  const auto read_it = [](const std::string& path) {
    EXPECT_LT(read_mat(path).arrays.size() + read_mat(path).others.size(), 3U);
  };
  for (const std::endian order : {std::endian::little, std::endian::big}) {
    EXPECT_LE(truncate_everywhere(sound(order), read_it).accepted, 8);  // between variables
  }
  std::ifstream in(ARGOSY_TEST_DATA "/flowers102/setid.mat", std::ios::binary);
  const std::string real(std::istreambuf_iterator<char>(in), {});
  EXPECT_LE(truncate_everywhere(real, read_it).accepted, 3);
}

TEST(Mat, BytesChangedAtRandomNeverBreakIt) {
  const auto read_it = [](const std::string& path) {
    for (const MatArray& array : read_mat(path).arrays) {
      (void)array.doubles();
      (void)array.integers();
    }
  };
  EXPECT_GT(flip_at_random(sound(std::endian::little), read_it, 5'000).refused, 1'000);
  EXPECT_GT(flip_at_random(sound(std::endian::big), read_it, 5'000).refused, 1'000);
}

}  // namespace
}  // namespace argosy::formats
