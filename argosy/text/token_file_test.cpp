#include "argosy/text/token_file.h"

#include <cstring>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/os/fd.h"
#include "argosy/os/whole_file.h"
#include "argosy/text/open_tokenizer.h"
#include "argosy/text/train_bpe.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Ids = std::vector<int32_t>;

class TokenFiles : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name = "file.tokens") const {
    return (folder_.path() / name).string();
  }
  void write(const std::string& name, std::string_view bytes) const {
    ASSERT_TRUE(
        os::write_whole(path(name), bytes, {.disk = os::WholeFileOptions::Disk::kNot}).ok());
  }
  [[nodiscard]] std::string error(const std::string& name = "file.tokens") const {
    return test::error_text<DataError>([&] { (void)TokenFile(path(name)); });
  }
  /// Two documents of bytes.
  void make() const {
    TokenFileWriter out(path(), byte_tokenizer());
    out.append(Ids{104, 105});
    out.end_document();
    out.append(Ids{255});
    out.append(Ids{});
    out.end_document();
    EXPECT_EQ(out.size(), 5);
    EXPECT_EQ(out.documents(), 2);
    out.finish();
  }

  const test::TempDir folder_{};
};

TEST_F(TokenFiles, HoldsTokensDocumentsAndTheirTokenizer) {
  make();
  const TokenFile file(path());
  EXPECT_EQ(file.size(), 5);
  EXPECT_EQ(file.width(), TokenWidth::k16);
  EXPECT_THAT(file.ids(0, 5), ElementsAre(104, 105, 256, 255, 256));
  EXPECT_EQ(file[3], 255);
  std::vector<int64_t> some(2);
  file.copy(1, some);
  EXPECT_THAT(some, ElementsAre(105, 256));
  EXPECT_THAT(file.ids(5, 0), IsEmpty());
  EXPECT_EQ(file.facts().documents, 2);
  EXPECT_EQ(file.facts().vocab_size, 257);
  EXPECT_EQ(file.facts().end_of_text, 256);
  file.check_made_by(byte_tokenizer());
  EXPECT_EQ(std::filesystem::file_size(path()), 64U + 10U);
}

TEST_F(TokenFiles, LargeVocabulariesTake32Bits) {
  // 65,537 tokens: bytes, and special ones.
  TrainBpeOptions options{.vocab_size = 65537, .special_tokens = {}};
  for (int i = 0; i < 65537 - 256; ++i) {
    options.special_tokens.push_back(i == 0 ? "<|endoftext|>" : "<" + std::to_string(i) + ">");
  }
  const Tokenizer large = train_bpe("", options);
  TokenFileWriter out(path(), large);
  out.append(Ids{65536, 3});
  out.finish();
  const TokenFile file(path());
  EXPECT_EQ(file.width(), TokenWidth::k32);
  EXPECT_THAT(file.ids(0, 2), ElementsAre(65536, 3));
  EXPECT_EQ(file[0], 65536);
}

TEST_F(TokenFiles, FilesOfNanoGptAreTokensAlone) {
  const std::vector<uint16_t> tokens{1, 50256, 65535};
  write("train.bin", {reinterpret_cast<const char*>(tokens.data()), 6});
  const TokenFile file(path("train.bin"));
  EXPECT_THAT(file.ids(0, 3), ElementsAre(1, 50256, 65535));
  EXPECT_EQ(file.facts().tokenizer, std::nullopt);
  EXPECT_EQ(file.facts().end_of_text, std::nullopt);
  file.check_made_by(byte_tokenizer());
  const std::vector<uint32_t> wide{70000};
  write("wide.bin", {reinterpret_cast<const char*>(wide.data()), 4});
  EXPECT_THAT(TokenFile(path("wide.bin"), {.headerless = TokenWidth::k32}).ids(0, 1),
              ElementsAre(70000));
  write("empty.bin", "");
  EXPECT_EQ(TokenFile(path("empty.bin")).size(), 0);
}

TEST_F(TokenFiles, CopiesShareTheMappingAndOutliveTheName) {
  make();
  auto first = std::make_unique<TokenFile>(path());
  const TokenFile second = *first;
  first.reset();
  std::filesystem::remove(path());
  EXPECT_EQ(second[0], 104);
}

TEST_F(TokenFiles, NothingIsLeftOfAWriterThatDoesNotFinish) {
  {
    TokenFileWriter out(path(), byte_tokenizer());
    out.append(Ids{1});
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(TokenFiles, DamageIsNamed) {
  EXPECT_EQ(error("none"),
            "[text.token_file] " + path("none") +
                ": cannot open: No such file or directory "
                "(ENOENT)");
  EXPECT_THAT(error("."), HasSubstr("expected a regular file"));
  write("odd.bin", "abc");
  EXPECT_THAT(error("odd.bin"),
              HasSubstr("no header, and its 3 bytes are no whole number of tokens of 2 bytes"));
  make();
  const std::string whole = *os::read_file(path());
  write("file.tokens", whole.substr(0, 20));
  EXPECT_THAT(error(), HasSubstr("torn: expected a header of 64 bytes, got 20"));
  write("file.tokens", whole.substr(0, whole.size() - 2));
  EXPECT_THAT(error(), HasSubstr("torn: expected 5 tokens, got 4. Make or copy it again"));
  write("file.tokens", whole.substr(0, whole.size() - 1));
  EXPECT_THAT(error(), HasSubstr("torn"));
  write("file.tokens", whole + "xx");
  EXPECT_THAT(error(), HasSubstr("torn: expected 5 tokens, got 6"));
  std::string changed = whole;
  changed[8] = 2;
  write("file.tokens", changed);
  EXPECT_THAT(error(), HasSubstr("version 2 of the format: this program reads version 1"));
  for (size_t at = 12; at < 64; ++at) {
    changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    write("file.tokens", changed);
    EXPECT_THAT(error(), HasSubstr("damaged: the header's checksum is wrong")) << at;
  }
}

TEST_F(TokenFiles, AnotherTokenizerIsRefused) {
  make();
  EXPECT_THAT(test::error_text<DataError>(
                  [&] { TokenFile(path()).check_made_by(train_bpe("abab", {.vocab_size = 300})); }),
              AllOf(HasSubstr("made by another tokenizer: expected "),
                    HasSubstr(" (this byte-level BPE of 258 tokens), got "),
                    HasSubstr("(257 tokens). Make the file again, or open the tokenizer that made "
                              "it")));
}

TEST_F(TokenFiles, WrongUseIsRefused) {
  make();
  const TokenFile file(path());
  for (const auto& [first, count] : {std::pair(-1, 1), {0, 6}, {5, 1}, {6, 0}, {0, -1}}) {
    EXPECT_THROW((void)file.ids(first, count), UsageError) << first << " " << count;
  }
  EXPECT_EQ(test::error_text<UsageError>([&] { (void)file[5]; }),
            "[text.token_file] tokens 5 to 5 are outside the 5 tokens of " + path());
  TokenFileWriter out(path("other"), byte_tokenizer());
  EXPECT_EQ(test::error_text<UsageError>([&] {
              out.append(Ids{1, 257});
            }),
            "[text.token_file] id 257 is outside the vocabulary of 257 tokens");
  EXPECT_THROW(out.append(Ids{-1}), UsageError);
  out.finish();
  EXPECT_THROW(out.append(Ids{1}), UsageError);
  EXPECT_THROW(out.finish(), UsageError);
  EXPECT_THAT(test::error_text<UsageError>(
                  [&] { TokenFileWriter(path("x"), train_bpe("", {.special_tokens = {}})); }),
              HasSubstr("expected a tokenizer with an end of text, which stands behind each "
                        "document; this byte-level BPE has none"));
  EXPECT_THAT(test::error_text<DataError>(
                  [&] { TokenFileWriter(path("no/such/folder"), byte_tokenizer()); }),
              HasSubstr("no/such/folder: cannot write"));
}

}  // namespace
}  // namespace argosy::text
