#include "argosy/formats/digest.h"

#include <sys/stat.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/formats/test_files.h"

namespace argosy::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

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
  const std::string data(10 << 20, 'p');
  const TestFile file(data);
  std::vector<std::pair<int64_t, int64_t>> reports;
  const std::string hex =
      file_digest(Digest::kSha256, file.path(), {.progress = [&](int64_t done, int64_t total) {
                    reports.emplace_back(done, total);
                  }});
  EXPECT_EQ(hex, of(Digest::kSha256, data));
  constexpr int64_t kMiB = 1 << 20;
  ASSERT_GE(reports.size(), 3U);
  for (const auto& [done, total] : reports) {
    EXPECT_EQ(total, 10 * kMiB);
    EXPECT_LE(done, total);
  }
  EXPECT_EQ(reports.back(), std::pair(10 * kMiB, 10 * kMiB));
  EXPECT_NE(reports[reports.size() - 2].first, 10 * kMiB);
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
