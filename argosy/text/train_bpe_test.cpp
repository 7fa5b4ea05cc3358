#include "argosy/text/train_bpe.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/os/fd.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::text {
namespace {

using testing::HasSubstr;

std::string merges_of(const Tokenizer& tokenizer) {
  const test::TempDir folder;
  tokenizer.save(folder.path().string());
  return *os::read_file(folder.path() / "merges.txt");
}

TEST(TrainBpe, MergesTheMostFrequentPairAndOfEqualOnesTheLowest) {
  // Words of one kind: "bd" 3 times, "ab" and "ac" twice; "ab" is before "ac".
  const std::string text = "bd\nbd\nbd\nac\nac\nab\nab\n";
  EXPECT_EQ(merges_of(train_bpe(text, {.vocab_size = 260})), "#version: 0.2\nb d\na b\na c\n");
}

TEST(TrainBpe, EndsWhereNothingIsFrequentEnough) {
  const Tokenizer tokenizer = train_bpe("abc\nabc\nxyz\n", {.vocab_size = 1000});
  EXPECT_EQ(merges_of(tokenizer), "#version: 0.2\na b\nab c\n");
  EXPECT_EQ(tokenizer.vocab_size(), 256 + 2 + 1);
  EXPECT_EQ(tokenizer.end_of_text(), 258);
  EXPECT_EQ(train_bpe("abab", {.vocab_size = 1000, .min_frequency = 0}).vocab_size(), 259);
  EXPECT_EQ(train_bpe("", {}).vocab_size(), 257);
}

TEST(TrainBpe, OverlappingPairsAreMergedFromTheLeft) {
  EXPECT_EQ(merges_of(train_bpe("aaaaa\naaaaa\n", {.vocab_size = 1000})),
            "#version: 0.2\na a\naa a\naa aaa\n");
}

TEST(TrainBpe, SpecialTokensAreCutOutOfTheTextAndComeLast) {
  const Tokenizer tokenizer = train_bpe(
      "ab<|end|>ab<|end|>ab", {.vocab_size = 300, .special_tokens = {"<|end|>", "<pad>"}});
  EXPECT_EQ(merges_of(tokenizer), "#version: 0.2\na b\n");
  EXPECT_EQ(tokenizer.id_of("<|end|>"), 257);
  EXPECT_EQ(tokenizer.pad(), 258);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("ab<pad> é")), "ab<pad> é");
}

TEST(TrainBpe, WrongOptionsAreRefused) {
  EXPECT_EQ(test::error_text<UsageError>([] { (void)train_bpe("", {.vocab_size = 256}); }),
            "[text.train_bpe] vocab_size must be from 257 (256 bytes and 1 special tokens) to "
            "2^24, got 256");
  EXPECT_THAT(test::error_text<UsageError>([] { (void)train_bpe("", {.min_frequency = -1}); }),
              HasSubstr("min_frequency must not be negative, got -1"));
  EXPECT_THAT(test::error_text<UsageError>([] {
                (void)train_bpe("", {.special_tokens = {"<a>", "<b>", "<a>"}});
              }),
              HasSubstr("expected different names of at least 2 bytes, got \"<a>\" twice"));
  EXPECT_THAT(test::error_text<UsageError>([] { (void)train_bpe("", {.special_tokens = {""}}); }),
              HasSubstr("got \"\""));
}

}  // namespace
}  // namespace argosy::text
