#include "argosy/formats/digest.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/formats/test_files.h"

namespace argosy::formats {
namespace {

using testing::HasSubstr;

std::string of(Digest kind, std::string_view text) {
  return digest_of(kind, std::as_bytes(std::span(text)));
}

TEST(DigestValues, AreThoseOfTheStandards) {
  // RFC 1321 (appendix A.5) and FIPS 180 (the examples of SHA-256).
  EXPECT_EQ(of(Digest::kMd5, ""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(of(Digest::kMd5, "message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(of(Digest::kSha256, "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(DigestValues, PiecesGiveWhatTheWholeGives) {
  const std::string text(100'000, 'q');
  Digester digester(Digest::kSha256);
  for (size_t i = 0; i < text.size(); i += 777) {
    digester.update(
        std::as_bytes(std::span(text).subspan(i, std::min<size_t>(777, text.size() - i))));
  }
  EXPECT_EQ(digester.hex(), of(Digest::kSha256, text));
  EXPECT_THROW((void)digester.hex(), UsageError);
  EXPECT_THROW(digester.update({}), UsageError);
}

TEST(FileDigest, IsThatOfTheBytesOnTheDisk) {
  const std::string packed = gzip("hello");
  const TestFile file(packed, "x.gz");
  EXPECT_EQ(file_digest(Digest::kMd5, file.path()), of(Digest::kMd5, packed));
  EXPECT_EQ(file_digest(Digest::kMd5, TestFile("").path()), of(Digest::kMd5, ""));
}

TEST(FileDigest, ReportsProgressAndTheEndOnce) {
  for (const int64_t size : {int64_t{8} << 20, int64_t{10} << 20, int64_t{1}, int64_t{0}}) {
    const std::string data(static_cast<size_t>(size), 'p');
    const TestFile file(data);
    std::vector<int64_t> reports;
    const auto progress = [&](int64_t done, int64_t total) {
      reports.push_back(done);
      EXPECT_EQ(total, size);
    };
    EXPECT_EQ(file_digest(Digest::kSha256, file.path(), {.progress = progress}),
              of(Digest::kSha256, data));
    ASSERT_FALSE(reports.empty());
    EXPECT_GE(reports.size(), static_cast<size_t>(size >> 22));
    EXPECT_EQ(reports.back(), size);
    EXPECT_TRUE(std::adjacent_find(reports.begin(), reports.end(), std::greater_equal<>()) ==
                reports.end())
        << "not ascending";
  }
}

TEST(FileDigest, WhatTheCallbackThrowsEndsIt) {
  const TestFile file("text");
  EXPECT_THROW(
      (void)file_digest(Digest::kMd5,
                        file.path(),
                        {.progress = [](int64_t, int64_t) { throw std::runtime_error("stop"); }}),
      std::runtime_error);
}

TEST(FileDigest, WhatIsNoFileSaysSo) {
  try {
    (void)file_digest(Digest::kMd5, "/nonexistent/x");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(),
                 "[formats.open] /nonexistent/x: cannot open: No such file or directory (ENOENT)");
  }
  const TestFile file("");
  const std::string pipe = file.path() + ".fifo";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW((void)file_digest(Digest::kMd5, pipe), DataError);  // and does not wait for a writer
  EXPECT_THROW((void)file_digest(Digest::kMd5, std::filesystem::temp_directory_path().string()),
               DataError);
}

}  // namespace
}  // namespace argosy::formats
