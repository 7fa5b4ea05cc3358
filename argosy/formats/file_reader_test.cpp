#include "argosy/formats/file_reader.h"

#include <sys/stat.h>
#include <zlib.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/formats/test_files.h"

namespace argosy::formats {
namespace {

using testing::HasSubstr;

std::string read_all(const std::string& path, size_t piece) {
  FileReader reader(path);
  std::string data;
  std::vector<uint8_t> buffer(piece);
  while (const size_t n = reader.read(buffer)) {
    data.append(buffer.begin(), buffer.begin() + static_cast<int64_t>(n));
  }
  EXPECT_EQ(reader.position(), static_cast<int64_t>(data.size()));
  EXPECT_LE(reader.position(), reader.most_bytes());
  EXPECT_EQ(reader.position(), reader.expected_bytes());
  return data;
}

std::string noise(size_t n) {
  std::string text(n, '\0');
  uint32_t state = 12345;
  for (char& c : text) {
    state = state * 1664525 + 1013904223;
    c = static_cast<char>(state >> 24 & 15);
  }
  return text;
}

/// The DataError that reading `content` to its end brings.
DataError error_of(const std::string& content) {
  const TestFile file(content);
  try {
    read_all(file.path(), 4096);
  } catch (const DataError& error) {
    EXPECT_EQ(error.place().path, file.path());
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return DataError("test", "nothing");
}

TEST(FileReader, PlainAndGzipGiveTheSameInAnyPieces) {
  const std::string data = noise(300'000);
  const TestFile plain(data);
  const TestFile packed(gzip(data));
  for (const size_t piece : {1UL, 7UL, 4096UL, 65536UL, 1'000'000UL}) {
    EXPECT_EQ(read_all(plain.path(), piece), data) << piece;
    EXPECT_EQ(read_all(packed.path(), piece), data) << piece;
  }
}

TEST(FileReader, RecognisesGzipByContentNotByName) {
  EXPECT_TRUE(FileReader(TestFile(gzip("x"), "data.txt").path()).compressed());
  EXPECT_FALSE(FileReader(TestFile("x", "data.gz").path()).compressed());
}

TEST(FileReader, EmptyFilesAreEmpty) {
  EXPECT_EQ(read_all(TestFile("").path(), 16), "");
  EXPECT_EQ(read_all(TestFile(gzip("")).path(), 16), "");
}

TEST(FileReader, JoinsMembersAndAllowsZerosAfterThem) {
  const TestFile file(gzip("one ") + gzip("") + gzip("two") + std::string(70'000, '\0'));
  EXPECT_EQ(read_all(file.path(), 3), "one two");
}

TEST(FileReader, MembersMayBeginAnywhereInItsBuffer) {
  std::string packed;
  std::string data;
  for (int i = 0; i < 40; ++i) {  // 40 headers, some of them across the buffer's end
    const std::string piece = noise(static_cast<size_t>(3000 + 977 * i));
    packed += gzip(piece);
    data += piece;
  }
  ASSERT_GT(packed.size(), 65536 * 3);
  EXPECT_EQ(read_all(TestFile(packed).path(), 10'000), data);
}

TEST(FileReader, TrailingGarbageIsNamedWithItsOffset) {
  const std::string good = gzip("payload");
  const DataError error = error_of(good + std::string(3, '\0') + "garbage");
  EXPECT_THAT(error.what(), HasSubstr("trailing bytes after the gzip data"));
  EXPECT_EQ(error.place().offset, static_cast<int64_t>(good.size() + 3));
}

TEST(FileReader, EveryTruncationIsSeen) {
  const std::string good = gzip(noise(500));
  for (size_t n = 2; n < good.size(); ++n) {
    const DataError error = error_of(good.substr(0, n));
    EXPECT_THAT(error.what(), HasSubstr("truncated gzip data")) << n;
    EXPECT_EQ(error.place().offset, static_cast<int64_t>(n));
  }
}

TEST(FileReader, WrongChecksumAndLengthAreSeen) {
  std::string bad_crc = gzip(noise(500));
  bad_crc[bad_crc.size() - 8] ^= 1;
  EXPECT_THAT(error_of(bad_crc).what(), HasSubstr("corrupt gzip data: wrong checksum or length"));
  std::string bad_length = gzip(noise(500));
  bad_length[bad_length.size() - 1] ^= 1;
  EXPECT_THAT(error_of(bad_length).what(), HasSubstr("wrong checksum or length"));
}

TEST(FileReader, AFlippedBitAnywhereInTheDataNeverPasses) {
  const std::string data = noise(200);
  const std::string good = gzip(data);
  for (size_t i = 10; i < good.size(); ++i) {  // the header's time stamp is not checked by gzip
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    const TestFile file(bad);
    EXPECT_THROW(read_all(file.path(), 64), DataError) << "byte " << i;
  }
}

TEST(FileReader, APipeIsRefusedAndNotWaitedFor) {
  const TestFile place("");
  const std::string pipe = place.path() + ".pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  try {
    const FileReader reader(pipe);
    ADD_FAILURE();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("expected a regular file"));
  }
  std::filesystem::remove(pipe);
}

TEST(FileReader, AbsentFileAndFolderSayWhy) {
  try {
    FileReader reader("/nonexistent/x.gz");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(
        error.what(),
        "[formats.open] /nonexistent/x.gz: cannot open: No such file or directory (ENOENT)");
  }
  EXPECT_THROW(FileReader(std::filesystem::temp_directory_path().string()), DataError);
}

}  // namespace
}  // namespace argosy::formats
