#include "argosy/formats/idx.h"

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/formats/test_damage.h"
#include "argosy/formats/test_files.h"

namespace argosy::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string be32(uint32_t v) {
  return {static_cast<char>(v >> 24),
          static_cast<char>(v >> 16),
          static_cast<char>(v >> 8),
          static_cast<char>(v)};
}

std::string idx(uint8_t type, const std::vector<uint32_t>& dims, const std::string& payload) {
  std::string text{'\0', '\0', static_cast<char>(type), static_cast<char>(dims.size())};
  for (const uint32_t dim : dims) {
    text += be32(dim);
  }
  return text + payload;
}

DataError idx_error(const std::string& content) {
  const TestFile file(content, "train-images");
  try {
    (void)read_idx(file.path());
  } catch (const DataError& error) {
    EXPECT_EQ(error.place().path, file.path());
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return DataError("test", "nothing");
}

TEST(Idx, ReadsBytesPlainAndGzip) {
  const std::string content = idx(0x08, {2, 3}, std::string("\x00\x01\x02\x03\xfe\xff", 6));
  for (const std::string& file : {content, gzip(content)}) {
    const IdxArray array = read_idx(TestFile(file).path());
    EXPECT_EQ(array.type, IdxType::kU8);
    EXPECT_THAT(array.dims, ElementsAre(2, 3));
    EXPECT_THAT(array.bytes, ElementsAre(0, 1, 2, 3, 254, 255));
  }
}

template <typename T>
std::vector<T> as(const IdxArray& array) {
  std::vector<T> values(array.bytes.size() / sizeof(T));
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

TEST(Idx, WiderTypesComeInHostOrder) {
  const std::string two("\x01\x02\xff\xfe", 4);
  EXPECT_THAT(as<int16_t>(read_idx(TestFile(idx(0x0b, {2}, two)).path())), ElementsAre(258, -2));
  EXPECT_THAT(as<int32_t>(read_idx(TestFile(idx(0x0c, {1}, be32(0x01020304))).path())),
              ElementsAre(0x01020304));
  EXPECT_THAT(as<float>(read_idx(TestFile(idx(0x0d, {1}, be32(0xbfc00000))).path())),
              ElementsAre(-1.5F));
  EXPECT_THAT(as<double>(read_idx(TestFile(idx(0x0e, {1}, be32(0x40045000) + be32(0))).path())),
              ElementsAre(2.5390625));
}

TEST(Idx, ADimensionMayBeZero) {
  const IdxArray array = read_idx(TestFile(idx(0x08, {0, 0xffffffff, 0xffffffff}, "")).path());
  EXPECT_THAT(array.dims, ElementsAre(0, 4294967295, 4294967295));
  EXPECT_TRUE(array.bytes.empty());
}

TEST(Idx, WrongMagicShowsWhatIsThere) {
  const DataError error = idx_error("\x89PNG and so on");
  EXPECT_THAT(error.what(), HasSubstr("[formats.idx]"));
  EXPECT_THAT(error.what(), HasSubstr("wrong magic number"));
  EXPECT_THAT(error.what(), HasSubstr("got 89 50 4e 47: not an IDX file"));
  EXPECT_EQ(error.place().offset, 0);
  EXPECT_THAT(idx_error(idx(0x0a, {1}, "x")).what(), HasSubstr("wrong magic number"));
  EXPECT_THAT(idx_error(idx(0x08, {}, "x")).what(), HasSubstr("wrong magic number"));
}

TEST(Idx, EveryTruncationIsAnErrorWithItsOffset) {
  const std::string content = idx(0x08, {3, 4}, std::string(12, 'p'));
  for (size_t n = 0; n < content.size(); ++n) {
    const DataError plain = idx_error(content.substr(0, n));
    EXPECT_THAT(plain.what(), HasSubstr("truncated")) << n;
    EXPECT_GE(plain.place().offset, n < 12 ? static_cast<int64_t>(n) / 4 * 4 : 4) << n;
    // A well-formed gzip file around the torn data: only the IDX header can tell.
    EXPECT_THAT(idx_error(gzip(content.substr(0, n))).what(), HasSubstr("truncated")) << n;
  }
}

TEST(Idx, TrailingBytesAreNamedWithTheirOffset) {
  const DataError error = idx_error(idx(0x08, {2}, "abc"));
  EXPECT_THAT(error.what(), HasSubstr("trailing bytes: the header promises 2 bytes"));
  EXPECT_EQ(error.place().offset, 10);
  const DataError packed = idx_error(gzip(idx(0x08, {2}, "abc")));
  EXPECT_THAT(packed.what(), HasSubstr("more follow, in the unpacked data"));
}

TEST(Idx, LengthFieldsThatLieAllocateNothing) {
  // 2^96 elements (overflows), and 4 GiB in a file of 17 bytes (does not).
  for (const std::string& lie :
       {idx(0x0e, {0xffffffff, 0xffffffff, 0xffffffff}, "x"), idx(0x08, {0xffffffff}, "x")}) {
    for (const std::string& content : {lie, gzip(lie)}) {
      const DataError error = idx_error(content);
      EXPECT_THAT(error.what(), HasSubstr("need more bytes than the file has"));
      EXPECT_EQ(error.place().offset, 4);
    }
  }
}

TEST(Idx, AGzipBombEndsAtTheLimit) {
  const TestFile bomb(gzip(idx(0x0d, {1000, 1000}, std::string(4'000'000, '\0'))));
  ASSERT_LT(std::filesystem::file_size(bomb.path()), 10'000U);
  try {
    (void)read_idx(bomb.path(), {.most_bytes = 3'999'999});
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(
        error.what(),
        HasSubstr("dimensions 1000 x 1000 are 4000000 bytes of elements, more than 3999999. "
                  "If it is sound, raise IdxOptions::most_bytes"));
    EXPECT_EQ(error.place().offset, 4);
  }
  EXPECT_EQ(read_idx(bomb.path(), {.most_bytes = 4'000'000}).bytes.size(), 4'000'000U);
}

TEST(Idx, TruncatedAndFlippedItIsAnErrorOrAnArray) {
  const MemoryFile file;
  const auto read = [&](const std::string& damaged) {
    const IdxArray array = read_idx(file.path(damaged));
    int64_t elements = 1;
    for (const int64_t dim : array.dims) {
      elements *= dim;
    }
    EXPECT_EQ(static_cast<int64_t>(array.bytes.size()), elements * element_bytes(array.type));
  };
  const std::string content = idx(0x0b, {9, 7, 5}, std::string(630, 'p'));
  for (const std::string& form : {content, gzip(content)}) {
    EXPECT_EQ(read_truncated(form, read).refused, 200);
    EXPECT_GT(read_flipped(form, read).refused, 100);
  }
}

TEST(Idx, ABadChecksumAtTheVeryEndIsSeen) {
  std::string content = gzip(idx(0x08, {4}, "abcd"));
  content[content.size() - 8] ^= 1;
  EXPECT_THAT(idx_error(content).what(), HasSubstr("wrong checksum or length"));
}

TEST(Idx, ReadsTheRealFashionMnist) {
  const std::filesystem::path folder = "/usr/share/datasets/fashion-mnist";
  ASSERT_TRUE(std::filesystem::exists(folder)) << "install the package dataset-fashion-mnist";
  const IdxArray images = read_idx((folder / "t10k-images-idx3-ubyte.gz").string());
  EXPECT_THAT(images.dims, ElementsAre(10000, 28, 28));
  const IdxArray labels = read_idx((folder / "t10k-labels-idx1-ubyte.gz").string());
  EXPECT_THAT(labels.dims, ElementsAre(10000));
  std::vector<int> count(10);
  for (const uint8_t label : labels.bytes) {
    ++count.at(label);
  }
  EXPECT_THAT(count, testing::Each(1000));
}

}  // namespace
}  // namespace argosy::formats
