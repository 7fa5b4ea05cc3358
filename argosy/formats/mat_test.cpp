#include "argosy/formats/mat.h"

#include <zlib.h>

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
#include "argosy/formats/flowers102.h"
#include "argosy/formats/test_files.h"

namespace argosy::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Writes MATLAB 5 files as the format's description has them, independently of the reader.
class Writer {
 public:
  explicit Writer(std::endian order) : order_(order) {}

  template <typename Number>
  [[nodiscard]] std::string number(Number value) const {
    std::string bytes(sizeof(Number), '\0');
    std::memcpy(bytes.data(), &value, sizeof(Number));
    if (order_ != std::endian::native) {
      std::reverse(bytes.begin(), bytes.end());
    }
    return bytes;
  }
  template <typename Number>
  [[nodiscard]] std::string numbers(const std::vector<Number>& values) const {
    std::string bytes;
    for (const Number value : values) {
      bytes += number(value);
    }
    return bytes;
  }
  [[nodiscard]] std::string element(uint32_t type, const std::string& data) const {
    if (data.size() <= 4 && !data.empty() && small) {
      return number(static_cast<uint32_t>(data.size() << 16 | type)) + padded(data, 4);
    }
    return number(type) + number(static_cast<uint32_t>(data.size())) + padded(data, 8);
  }
  [[nodiscard]] std::string matrix(uint32_t flags,
                                   const std::vector<int32_t>& dims,
                                   const std::string& name,
                                   uint32_t type,
                                   const std::string& data) const {
    return element(14,
                   element(6, number(flags) + number(uint32_t{0})) + element(5, numbers(dims)) +
                       element(1, name) + element(type, data));
  }
  [[nodiscard]] std::string compressed(const std::string& data) const {
    std::string packed(compressBound(data.size()), '\0');
    uLongf size = packed.size();
    compress(reinterpret_cast<Bytef*>(packed.data()),
             &size,
             reinterpret_cast<const Bytef*>(data.data()),
             data.size());
    packed.resize(size);
    return number(uint32_t{15}) + number(static_cast<uint32_t>(size)) + packed;
  }
  [[nodiscard]] std::string header() const {
    std::string text = "MATLAB 5.0 MAT-file, written by a test";
    text.resize(124, ' ');
    return text + number(uint16_t{0x0100}) + number(static_cast<uint16_t>('M' << 8 | 'I'));
  }

  bool small = true;  // elements of up to 4 bytes in the short form

 private:
  static std::string padded(std::string data, size_t unit) {
    data.resize((data.size() + unit - 1) / unit * unit);
    return data;
  }
  std::endian order_;
};

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
      Writer out(order);
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
  const Writer out(std::endian::big);
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
  const Writer out(std::endian::little);
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
  EXPECT_THAT(
      error_of(out.header() + out.matrix(15, {1, 1}, "v", 13, out.number(UINT64_MAX))).what(),
      HasSubstr("number 0 is above 2^63"));
}

TEST(Mat, EmptyArraysAreEmpty) {
  const Writer out(std::endian::little);
  const MatFile file = read(out.header() + out.matrix(kDouble, {0, 7}, "none", 9, ""));
  EXPECT_EQ(file.at("none").size(), 0);
  EXPECT_TRUE(read(out.header()).arrays.empty());
}

TEST(Mat, OtherVariablesAreNamedAndPassedOver) {
  const Writer out(std::endian::little);
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
  const Writer out(std::endian::little);
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
  const Writer out(std::endian::little);
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
  const Writer out(std::endian::little);
  const std::string matrix = out.matrix(kDouble, {2, 2}, "m", kU8Type, "abc");
  const DataError error = error_of(out.header() + out.compressed(matrix));
  EXPECT_THAT(error.what(), HasSubstr("of the unpacked variable"));
  EXPECT_EQ(error.place().offset, 128);
  EXPECT_THAT(error_of(out.header() + out.compressed(matrix + matrix)).what(),
              HasSubstr("damaged"));
  const std::string good = out.matrix(kDouble, {1, 3}, "m", kU8Type, "abc");
  EXPECT_THAT(error_of(out.header() + out.compressed(good + good)).what(),
              HasSubstr("a compressed variable goes on after its end"));
  EXPECT_THAT(error_of(out.header() + out.compressed("")).what(),
              HasSubstr("torn: expected a variable"));
}

TEST(Mat, BytesBehindACompressedVariableAreAnError) {
  const Writer out(std::endian::native);
  std::string element = out.compressed(out.matrix(kDouble, {1, 1}, "a", kU8Type, "\x01"));
  const auto size = static_cast<uint32_t>(element.size() - 8 + 3);
  element.replace(4, 4, out.number(size));
  EXPECT_THAT(error_of(out.header() + element + "xyz").what(), HasSubstr("bytes follow it"));
}

TEST(Mat, ANameTwiceIsAnError) {
  const Writer out(std::endian::little);
  const std::string one = out.matrix(kDouble, {1, 1}, "v", kU8Type, "a");
  EXPECT_THAT(error_of(out.header() + one + one).what(), HasSubstr("two variables \"v\""));
}

std::string sound(std::endian order) {
  const Writer out(order);
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

class Flowers102 : public testing::Test {
 protected:
  Writer out{std::endian::little};
  std::vector<uint8_t> labels{77, 1, 102, 5, 5, 6};
  std::vector<uint16_t> trnid{2}, valid{4, 3}, tstid{1, 6, 5};

  [[nodiscard]] std::string array(const char* name, const std::vector<uint16_t>& ids) const {
    return out.compressed(
        out.matrix(kDouble, {1, static_cast<int32_t>(ids.size())}, name, 4, out.numbers(ids)));
  }
  [[nodiscard]] Flowers102Index read(Flowers102Options options = {}) const {
    const TestFile label_file(out.header() +
                              out.compressed(out.matrix(kDouble,
                                                        {1, static_cast<int32_t>(labels.size())},
                                                        "labels",
                                                        kU8Type,
                                                        {labels.begin(), labels.end()})));
    const TestFile split_file(out.header() + array("trnid", trnid) + array("valid", valid) +
                              array("tstid", tstid));
    return read_flowers102(label_file.path(), split_file.path(), options);
  }
  [[nodiscard]] std::string complaint() const {
    try {
      (void)read();
    } catch (const DataError& error) {
      return error.what();
    }
    return "none";
  }
};

TEST_F(Flowers102, LabelsCountFromZeroAndIdsFromOne) {
  const Flowers102Index index = read();
  EXPECT_THAT(index.labels, ElementsAre(76, 0, 101, 4, 4, 5));
  EXPECT_EQ(index.label(1), 76);
  EXPECT_THAT(index.train, ElementsAre(2));
  EXPECT_THAT(index.valid, ElementsAre(4, 3));
  EXPECT_THAT(index.test, ElementsAre(1, 6, 5));
  EXPECT_THROW((void)index.label(0), UsageError);
  EXPECT_THROW((void)index.label(7), UsageError);
}

TEST_F(Flowers102, PaddlesSplitsAreSwapped) {
  const Flowers102Index index = read({.splits = FlowersSplits::kPaddle});
  EXPECT_THAT(index.train, ElementsAre(1, 6, 5));
  EXPECT_THAT(index.valid, ElementsAre(4, 3));
  EXPECT_THAT(index.test, ElementsAre(2));
}

TEST_F(Flowers102, LabelsOutOfRangeAreNamed) {
  labels[2] = 103;
  EXPECT_THAT(complaint(), HasSubstr("expected a label 1 to 102, got 103 (sample 2)"));
  labels[2] = 0;
  EXPECT_THAT(complaint(), HasSubstr("got 0 (sample 2)"));
}

TEST_F(Flowers102, IdsOutOfRangeOrTwiceAreNamed) {
  tstid[1] = 7;
  EXPECT_THAT(complaint(),
              HasSubstr("tstid: expected an id 1 to 6, as there are labels, got 7 (sample 1)"));
  tstid[1] = 0;
  EXPECT_THAT(complaint(), HasSubstr("got 0"));
  tstid[1] = 2;
  EXPECT_THAT(complaint(), HasSubstr("tstid: id 2 is in a split for the second time"));
}

TEST(Flowers102Files, TheRealOnesAreWhatTheAuthorsSay) {
  const std::string folder = ARGOSY_TEST_DATA "/flowers102/";
  const Flowers102Index index = read_flowers102(folder + "imagelabels.mat", folder + "setid.mat");
  EXPECT_EQ(index.labels.size(), 8189U);
  EXPECT_EQ(index.train.size(), 1020U);
  EXPECT_EQ(index.valid.size(), 1020U);
  EXPECT_EQ(index.test.size(), 6149U);
  EXPECT_EQ(index.label(1), 76);
  std::vector<int> per_class(102);
  for (const int64_t id : index.train) {
    ++per_class.at(index.label(id));
  }
  EXPECT_THAT(per_class, testing::Each(10));
  EXPECT_EQ(flowers102_picture(index.train[0]), "jpg/image_06765.jpg");
  EXPECT_EQ(flowers102_picture(1), "jpg/image_00001.jpg");
}

}  // namespace
}  // namespace argosy::formats
