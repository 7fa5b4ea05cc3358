#include "argosy/text/tokenizer.h"

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/os/whole_file.h"
#include "argosy/text/open_tokenizer.h"
#include "argosy/text/splitter.h"
#include "argosy/text/test_golden_text.h"
#include "argosy/text/trie.h"
#include "argosy/text/utf8.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Ids = std::vector<int32_t>;
using Pieces = std::vector<std::string>;

TEST(ByteTokenizer, BytesAndTheEndOfAText) {
  const Tokenizer bytes = byte_tokenizer();
  EXPECT_EQ(bytes.vocab_size(), 257);
  EXPECT_EQ(bytes.kind(), "bytes");
  EXPECT_THAT(bytes.encode("aé<|endoftext|>"), ElementsAre(97, 0xC3, 0xA9, 256));
  EXPECT_EQ(bytes.encode("<|endoftext|>", {.special_text = SpecialText::kPlain}).size(), 13U);
  EXPECT_THAT(bytes.encode("a", {.eos = true}), ElementsAre(97, 256));
  EXPECT_EQ(bytes.decode(Ids{97, 256, 98}), "a<|endoftext|>b");
  EXPECT_EQ(bytes.decode(Ids{97, 256, 98}, {.skip_special = true}), "ab");
  EXPECT_EQ(bytes.end_of_text(), 256);
  EXPECT_EQ(bytes.begin_of_text(), std::nullopt);
  EXPECT_EQ(bytes.id_of("a"), 97);
  EXPECT_EQ(bytes.id_of("<|endoftext|>"), 256);
  EXPECT_EQ(bytes.id_of("ab"), std::nullopt);
  EXPECT_EQ(bytes.token(256), "<|endoftext|>");
  EXPECT_EQ(open_tokenizer("bytes").digest(), bytes.digest());
}

TEST(Tokenizer, RolesComeFromNamesTemplatesAndModels) {
  const Tokenizer gpt2 = open_tokenizer(golden("gpt2"));
  EXPECT_EQ(gpt2.kind(), "byte-level BPE");
  EXPECT_THAT(gpt2.special_tokens(), ElementsAre(SpecialToken{0, "<|endoftext|>"}));
  EXPECT_EQ(gpt2.end_of_text(), 0);
  EXPECT_EQ(gpt2.begin_of_text(), std::nullopt);

  const Tokenizer llama3 = open_tokenizer(golden("llama3/tokenizer.json"));
  EXPECT_EQ(llama3.begin_of_text(), llama3.id_of("<|begin_of_text|>"));
  EXPECT_EQ(llama3.end_of_text(), llama3.id_of("<|end_of_text|>"));
  EXPECT_EQ(llama3.encode("a", {.bos = true, .eos = true}),
            (Ids{*llama3.begin_of_text(), *llama3.id_of("a"), *llama3.end_of_text()}));

  const Tokenizer llama2 = open_tokenizer(golden("llama2.model"));
  EXPECT_EQ(llama2.kind(), "sentencepiece BPE");
  EXPECT_EQ(llama2.begin_of_text(), 1);
  EXPECT_EQ(llama2.end_of_text(), 2);
  EXPECT_EQ(llama2.pad(), std::nullopt);
  EXPECT_EQ(llama2.token(1), "<s>");
  EXPECT_EQ(llama2.id_of("<0x0A>"), 13);
  EXPECT_EQ(llama2.id_of("no such piece"), std::nullopt);
  EXPECT_EQ(open_tokenizer(golden("unigram.model")).pad(), 3);
}

TEST(Tokenizer, AConfigurationBesideTheFileNamesItsRoles) {
  const test::TempDir folder;
  std::filesystem::copy(golden("llama3"), folder.path(), std::filesystem::copy_options::recursive);
  const auto write = [&](const std::string& json) {
    ASSERT_TRUE(os::write_whole(folder.path() / "tokenizer_config.json", json).ok());
  };
  write(
      R"({"eos_token": "<|eot_id|>", "pad_token": {"content": "<|end_of_text|>"}, "bos_token": null})");
  const Tokenizer chat = open_tokenizer(folder.path().string());
  EXPECT_EQ(chat.end_of_text(), chat.id_of("<|eot_id|>"));
  EXPECT_EQ(chat.pad(), chat.id_of("<|end_of_text|>"));
  EXPECT_EQ(chat.begin_of_text(), chat.id_of("<|begin_of_text|>"));
  EXPECT_EQ(chat.digest(), open_tokenizer(golden("llama3")).digest());
}

TEST(Tokenizer, NamesOfSpecialTokensCanStayText) {
  const Tokenizer tokenizer = open_tokenizer(golden("gpt2"));
  const Ids plain = tokenizer.encode("a<|endoftext|>", {.special_text = SpecialText::kPlain});
  EXPECT_GT(plain.size(), 5U);
  EXPECT_THAT(plain, testing::Not(testing::Contains(0)));
  EXPECT_EQ(tokenizer.decode(plain), "a<|endoftext|>");
  // Added tokens that are not special are found all the same.
  const Tokenizer digits = open_tokenizer(golden("digits"));
  EXPECT_EQ(digits.encode("new_word", {.special_text = SpecialText::kPlain}),
            (Ids{*digits.id_of("new_word")}));
}

TEST(Tokenizer, SkipsSpecialTokensIfAsked) {
  const Tokenizer tokenizer = open_tokenizer(golden("llama3"));
  const Ids ids = tokenizer.encode("<|begin_of_text|>one<|eot_id|>");
  EXPECT_EQ(tokenizer.decode(ids), "<|begin_of_text|>one<|eot_id|>");
  EXPECT_EQ(tokenizer.decode(ids, {.skip_special = true}), "one");
}

TEST(Tokenizer, EveryTokenHasItsOwnText) {
  for (const char* const name : {"gpt2", "llama3", "digits", "llama2.model", "unigram.model"}) {
    const Tokenizer tokenizer = open_tokenizer(golden(name));
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      EXPECT_EQ(tokenizer.id_of(tokenizer.token(id)), id) << name;
    }
  }
}

TEST(Tokenizer, DigestsDifferWhereIdsDo) {
  std::vector<uint64_t> digests{byte_tokenizer().digest()};
  for (const char* const name : {"gpt2", "llama3", "digits", "llama2.model", "unigram.model"}) {
    digests.push_back(open_tokenizer(golden(name)).digest());
    EXPECT_EQ(open_tokenizer(golden(name)).digest(), digests.back());
  }
  std::sort(digests.begin(), digests.end());
  EXPECT_EQ(std::unique(digests.begin(), digests.end()), digests.end());
}

TEST(Tokenizer, ThreadsShareOne) {
  const Tokenizer tokenizer = open_tokenizer(golden("llama3"));
  const std::string corpus = *os::read_file(golden("corpus.txt"));
  const Ids expected = tokenizer.encode(corpus);
  std::vector<std::thread> threads;
  std::vector<Ids> got(4);
  for (Ids& each : got) {
    threads.emplace_back([&] { each = tokenizer.encode(corpus); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(got, testing::Each(expected));
}

TEST(Tokenizer, SavesWhatGpt2Reads) {
  const test::TempDir folder;
  const Tokenizer tokenizer = open_tokenizer(golden("gpt2/merges.txt"));
  tokenizer.save((folder.path() / "new" / "folder").string());
  const Tokenizer same = open_tokenizer((folder.path() / "new/folder/vocab.json").string());
  EXPECT_EQ(same.digest(), tokenizer.digest());
  EXPECT_EQ(*os::read_file(folder.path() / "new/folder/merges.txt"),
            *os::read_file(golden("gpt2/merges.txt")));
  EXPECT_EQ(nlohmann::json::parse(*os::read_file(folder.path() / "new/folder/vocab.json")),
            nlohmann::json::parse(*os::read_file(golden("gpt2/vocab.json"))));
}

TEST(Tokenizer, WrongUseIsRefused) {
  const Tokenizer bytes = byte_tokenizer();
  EXPECT_EQ(test::error_text<UsageError>([&] {
              (void)bytes.decode(Ids{1, 2, 257});
            }),
            "[text.decode] no token has the id 257 (position 2): expected 0 to 256. Do the ids "
            "belong to another tokenizer?");
  EXPECT_THROW((void)bytes.decode(Ids{-1}), UsageError);
  EXPECT_EQ(test::error_text<UsageError>([&] { (void)bytes.token(300); }),
            "[text.token] no token has the id 300: expected 0 to 256");
  EXPECT_EQ(test::error_text<UsageError>([&] { (void)bytes.encode("a", {.bos = true}); }),
            "[text.encode] option bos: this tokenizer (bytes) has no such token. Leave it out, or "
            "add the id of yours to what encode() returns");
  EXPECT_THAT(test::error_text<UsageError>([&] { bytes.save("nowhere"); }),
              HasSubstr("[text.save] vocab.json and merges.txt hold a byte-level BPE, and this is "
                        "a tokenizer of the kind bytes"));
  EXPECT_THAT(
      test::error_text<UsageError>([&] { open_tokenizer(golden("llama3")).save("nowhere"); }),
      HasSubstr("[text.save] vocab.json and merges.txt cannot say how"));
  const test::TempDir folder;
  ASSERT_TRUE(os::write_whole(folder.path() / "file", "x").ok());
  EXPECT_THAT(test::error_text<DataError>(
                  [&] { open_tokenizer(golden("gpt2")).save((folder.path() / "file").string()); }),
              HasSubstr("file"));
}

Pieces split(std::string_view pattern, std::string_view text, Splitter::Keep keep) {
  Pieces pieces;
  Splitter(pattern, keep, "text.split", "").split(text, [&](std::string_view piece) {
    pieces.emplace_back(piece);
  });
  return pieces;
}

TEST(Splitter, KeepsWhatStandsBetweenMatchesOrDropsIt) {
  EXPECT_THAT(split("\\p{N}", "ab1c23", Splitter::Keep::kAll),
              ElementsAre("ab", "1", "c", "2", "3"));
  EXPECT_THAT(split("\\p{N}", "ab1c23", Splitter::Keep::kMatches), ElementsAre("1", "2", "3"));
  EXPECT_THAT(split("x*", "axxbé", Splitter::Keep::kAll), ElementsAre("a", "xx", "bé"));
  EXPECT_THAT(split("x", "", Splitter::Keep::kAll), ElementsAre());
}

TEST(Splitter, BytesThatAreNoTextArePiecesOfTheirOwn) {
  EXPECT_THAT(split(kGpt2Pattern, "one \xFF\xFE two\xC3", Splitter::Keep::kAll),
              ElementsAre("one", " ", "\xFF\xFE", " two", "\xC3"));
}

TEST(Splitter, WhiteSpaceIsUnicodes) {
  // U+180E has not been white space since Unicode 6.3; U+0085 is.
  EXPECT_THAT(split(kGpt2Pattern, "a \u180e!b\u0085\u0085c", Splitter::Keep::kAll),
              ElementsAre("a", " \u180e!", "b", "\u0085", "\u0085", "c"));
  EXPECT_THAT(split("[\\S]+", "\u180ea b", Splitter::Keep::kMatches), ElementsAre("\u180ea", "b"));
}

TEST(Splitter, ALongRunDoesNotExhaustTheStack) {
  const std::string run(1 << 20, 'a');
  EXPECT_THAT(split("(?:a|b)*c|(?:a|b)+", run, Splitter::Keep::kAll), ElementsAre(run));
  EXPECT_THAT(split(kGpt2Pattern, std::string(1 << 20, ' ') + "x", Splitter::Keep::kAll),
              ElementsAre(std::string((1 << 20) - 1, ' '), " x"));
}

TEST(Splitter, AnExpressionThatTakesForEverIsAnError) {
  EXPECT_THAT(test::error_text<DataError>([] {
                (void)split("(?:a+)+b|(*FAIL)", std::string(64, 'a'), Splitter::Keep::kAll);
              }),
              HasSubstr("[text.split] the pre-tokenizer's expression cannot be matched in this "
                        "text: match limit exceeded"));
}

TEST(Trie, FindsTheLongestKey) {
  Trie trie;
  EXPECT_EQ(trie.longest("a").bytes, 0U);
  trie.add("ab", 1);
  trie.add("abcd", 2);
  EXPECT_EQ(trie.longest("abc").bytes, 2U);
  EXPECT_EQ(trie.longest("abcde").value, 2);
  EXPECT_EQ(trie.longest("a").bytes, 0U);
  EXPECT_EQ(trie.longest("").bytes, 0U);
}

TEST(Utf8, KnowsCharactersAndSpace) {
  EXPECT_EQ(character_bytes("a"), 1U);
  EXPECT_EQ(character_bytes("é"), 2U);
  EXPECT_EQ(character_bytes("東"), 3U);
  EXPECT_EQ(character_bytes("🔥"), 4U);
  for (const char* const bad : {"",
                                "\x80",
                                "\xC0\x80",
                                "\xC3",
                                "\xE0\x80\x80",
                                "\xED\xA0\x80",
                                "\xF0\x80\x80\x80",
                                "\xF4\x90\x80\x80",
                                "\xF5\x80\x80\x80"}) {
    EXPECT_EQ(character_bytes(bad), 0U) << bad;
  }
  EXPECT_EQ(leading_space(" \t\xC2\xA0\xE3\x80\x80x "), 7U);
  EXPECT_EQ(trailing_space("x \xE2\x80\x89\n"), 5U);
  EXPECT_EQ(trailing_space("  "), 2U);
}

}  // namespace
}  // namespace argosy::text
