#include "argosy/text/make_token_file.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/formats/test_files.h"
#include "argosy/os/fd.h"
#include "argosy/os/whole_file.h"
#include "argosy/text/open_tokenizer.h"
#include "argosy/text/token_file.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::text {
namespace {

using testing::HasSubstr;
using Ids = std::vector<int32_t>;

std::string golden_file(const char* name) {
  return std::string(ARGOSY_GOLDEN_TEXT) + "/" + name;
}

class MakeTokenFile : public testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view content) const {
    const std::filesystem::path path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    EXPECT_TRUE(os::write_whole(path, content, {.disk = os::WholeFileOptions::Disk::kNot}).ok());
    return path.string();
  }
  /// What is in the file that is made of these paths.
  std::string made(const std::vector<std::string>& paths,
                   const MakeTokenFileOptions& options = {}) const {
    make_token_file(paths, out(), byte_tokenizer(), options);
    const TokenFile file(out());
    return byte_tokenizer().decode(file.ids(0, file.size()));
  }
  [[nodiscard]] std::string out() const { return (folder_.path() / "out.tokens").string(); }

  const test::TempDir folder_{};
};

TEST_F(MakeTokenFile, FilesOfAFolderInTheOrderOfTheirPaths) {
  write("books/b.txt", "second");
  write("books/a/x.txt", "first\n");
  write("books/c.txt.gz", formats::gzip("third"));
  write("books/picture.jpeg", "no text");
  write("books/empty.txt", "");
  const std::string folder = (folder_.path() / "books").string();
  const MadeTokenFile result = make_token_file({folder}, out(), byte_tokenizer());
  EXPECT_EQ(result.files, 4);
  EXPECT_EQ(result.documents, 3);
  EXPECT_EQ(result.bytes, 6 + 6 + 5);
  EXPECT_EQ(result.tokens, 6 + 6 + 5 + 3);
  EXPECT_EQ(made({folder}), "first\n<|endoftext|>second<|endoftext|>third<|endoftext|>");
  EXPECT_EQ(made({folder + "/b.txt", folder + "/picture.jpeg"}),
            "second<|endoftext|>no text<|endoftext|>");
  EXPECT_EQ(made({folder}, {.endings = {".jpeg"}}), "no text<|endoftext|>");
}

TEST_F(MakeTokenFile, LinesAsDocuments) {
  const std::string path = write("a.txt", "one\n\ntwo\r\nthree");
  EXPECT_EQ(made({path}, {.documents = Documents::kLines}),
            "one<|endoftext|>two<|endoftext|>three<|endoftext|>");
}

TEST_F(MakeTokenFile, NamesOfSpecialTokensInTheText) {
  const std::string path = write("a.txt", "one<|endoftext|>two");
  EXPECT_EQ(make_token_file({path}, out(), byte_tokenizer()).tokens, 3 + 1 + 3 + 1);
  EXPECT_EQ(make_token_file({path}, out(), byte_tokenizer(), {.special_text = SpecialText::kPlain})
                .tokens,
            19 + 1);
}

TEST_F(MakeTokenFile, PiecesGiveTheTokensOfTheWhole) {
  const std::string corpus = *os::read_file(golden_file("corpus.txt"));
  for (const char* const name : {"gpt2", "llama3"}) {
    const Tokenizer tokenizer = open_tokenizer(golden_file(name));
    Ids expected = tokenizer.encode(corpus);
    expected.push_back(*tokenizer.end_of_text());
    for (const size_t piece_bytes : {500U, 1000U, 4096U, 1U << 20}) {
      make_token_file({golden_file("corpus.txt")}, out(), tokenizer, {.piece_bytes = piece_bytes});
      const TokenFile file(out());
      EXPECT_EQ(file.ids(0, file.size()), expected) << name << " " << piece_bytes;
      EXPECT_EQ(file.facts().documents, 1);
      file.check_made_by(tokenizer);
    }
  }
}

TEST_F(MakeTokenFile, ADocumentBeginsOnce) {
  const Tokenizer tokenizer = open_tokenizer(golden_file("llama3"));
  const std::string path = write("a.txt", std::string(60, 'x') + "\n" + std::string(60, 'y'));
  make_token_file({path, path}, out(), tokenizer, {.bos = true, .piece_bytes = 64});
  const TokenFile file(out());
  const Ids ids = file.ids(0, file.size());
  EXPECT_EQ(std::count(ids.begin(), ids.end(), *tokenizer.begin_of_text()), 2);
  EXPECT_EQ(ids.front(), *tokenizer.begin_of_text());
}

TEST_F(MakeTokenFile, SaysHowFarItIs) {
  const std::string path = write("a.txt", "one\ntwo\n");
  std::vector<TokenFileProgress> said;
  made({path, path},
       {.documents = Documents::kLines, .progress = [&](const auto& at) { said.push_back(at); }});
  ASSERT_EQ(said.size(), 5U);
  EXPECT_EQ(said[0].documents, 1);
  EXPECT_EQ(said[0].total_bytes, 16);
  EXPECT_EQ(said[0].file, path);
  EXPECT_EQ(said[4].documents, 4);
  EXPECT_EQ(said[4].bytes, 16);
  EXPECT_EQ(said[4].tokens, 16);
}

TEST_F(MakeTokenFile, WrongPathsAndOptions) {
  const auto error = [&](const std::string& path) {
    return test::error_text<DataError>([&] { (void)made({path}); });
  };
  EXPECT_THAT(error((folder_.path() / "none.txt").string()),
              HasSubstr("none.txt: cannot open: No such file"));
  EXPECT_THAT(error(folder_.path().string()),
              HasSubstr("no text in this folder: expected files that end with .txt or .txt.gz, got "
                        "none. Set .endings, or name the files"));
  EXPECT_THAT(error(write("torn.txt.gz", formats::gzip(std::string(1000, 'x')).substr(0, 20))),
              HasSubstr("truncated gzip data"));
  EXPECT_FALSE(std::filesystem::exists(out()));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)made({}); }),
              HasSubstr("[text.make_token_file] expected files or folders, got none"));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)made({"x"}, {.piece_bytes = 3}); }),
              HasSubstr("piece_bytes must be at least 64, got 3"));
}

}  // namespace
}  // namespace argosy::text
