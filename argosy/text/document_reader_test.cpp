#include "argosy/text/document_reader.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/os/whole_file.h"

#include "tests/support/temp_dir.h"

namespace argosy::text {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// The pieces of a file; each document ends with '|'.
std::vector<std::string> pieces(std::string_view content, Documents documents, size_t most) {
  const test::TempDir folder;
  const std::string path = (folder.path() / "x.txt").string();
  EXPECT_TRUE(os::write_whole(path, content, {.disk = os::WholeFileOptions::Disk::kNot}).ok());
  DocumentReader reader(path, documents, most);
  std::vector<std::string> all;
  while (const auto piece = reader.next()) {
    all.push_back(std::string(piece->text) + (piece->ends ? "|" : ""));
  }
  return all;
}

TEST(DocumentReader, AFileIsADocument) {
  EXPECT_THAT(pieces("one\ntwo\n", Documents::kFiles, 100), ElementsAre("one\ntwo\n|"));
  EXPECT_THAT(pieces("12345678", Documents::kFiles, 8), ElementsAre("12345678|"));
  EXPECT_THAT(pieces("", Documents::kFiles, 8), IsEmpty());
}

TEST(DocumentReader, ALongOneEndsWhereAWordBeginsAnyway) {
  EXPECT_THAT(pieces("one\ntwo\n three", Documents::kFiles, 10),
              ElementsAre("one\n", "two\n three|"));
  EXPECT_THAT(pieces("a\nb \nccccc", Documents::kFiles, 6), ElementsAre("a\n", "b \n", "ccccc|"));
  // No such place: behind the last line break, or the last whole character.
  EXPECT_THAT(pieces("one \n\ntwo", Documents::kFiles, 7), ElementsAre("one \n\n", "two|"));
  EXPECT_THAT(pieces("12345678é9", Documents::kFiles, 9), ElementsAre("12345678", "é9|"));
  EXPECT_THAT(pieces("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", Documents::kFiles, 8),
              ElementsAre("\x80\x80\x80\x80", "\x80\x80\x80\x80\x80\x80|"));
}

TEST(DocumentReader, EachLineThatIsNotEmptyIsADocument) {
  EXPECT_THAT(pieces("one\n\n two\r\n\r\nthree", Documents::kLines, 100),
              ElementsAre("one|", " two|", "three|"));
  EXPECT_THAT(pieces("\n\n", Documents::kLines, 100), IsEmpty());
  EXPECT_THAT(pieces("123456789012\nx\n", Documents::kLines, 8),
              ElementsAre("12345678", "9012|", "x|"));
  EXPECT_THAT(pieces("12345678\nx", Documents::kLines, 8), ElementsAre("12345678|", "x|"));
  EXPECT_THAT(pieces("123456789\n\nx", Documents::kLines, 8), ElementsAre("12345678", "9|", "x|"));
}

}  // namespace
}  // namespace argosy::text
