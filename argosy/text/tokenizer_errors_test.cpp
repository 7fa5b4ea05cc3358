#include <filesystem>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/os/whole_file.h"
#include "argosy/text/byte_alphabet.h"
#include "argosy/text/open_tokenizer.h"
#include "argosy/text/test_golden_text.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

// Files that are no tokenizer, damaged, or of a kind that is not read.
namespace argosy::text {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class TokenizerErrors : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& content) {
    const std::filesystem::path path = folder_.path() / name;
    EXPECT_TRUE(os::write_whole(path, content, {.disk = os::WholeFileOptions::Disk::kNot}).ok());
    return path.string();
  }
  static std::string error(const std::string& path) {
    return test::error_text<DataError>([&] { (void)open_tokenizer(path); });
  }
  /// The message after a change of the file that Llama 3's golden tokenizer has.
  std::string after(const std::function<void(json&)>& change) {
    json file = json::parse(*os::read_file(golden("llama3/tokenizer.json")));
    change(file);
    return error(write("tokenizer.json", file.dump()));
  }
  std::string folder() const { return folder_.path().string(); }

  test::TempDir folder_{};
};

TEST_F(TokenizerErrors, NoTokenizer) {
  EXPECT_EQ(error(folder() + "/none"),
            "[text.open_tokenizer] " + folder() +
                "/none: no such file or folder: expected that of a tokenizer, or the word bytes. "
                "Check the path");
  EXPECT_THAT(error(folder()),
              HasSubstr("no tokenizer in this folder: expected tokenizer.json, "
                        "vocab.json with merges.txt, or a .model of "
                        "sentencepiece, got an empty folder"));
  EXPECT_THAT(error(write("readme.txt", "Read me first.")),
              HasSubstr("got a file that begins with \"Read me first.\""));
  EXPECT_THAT(error(folder()), HasSubstr("got readme.txt. Check the path"));
  EXPECT_THAT(error("/dev/null"), HasSubstr("expected a file or a folder, got something else"));
  write("a.model", "");
  write("b.model", "");
  EXPECT_THAT(error(folder()), HasSubstr("several models: expected one, got a.model, b.model"));
}

TEST_F(TokenizerErrors, HalfOfAPair) {
  std::filesystem::copy_file(golden("gpt2/vocab.json"), folder() + "/vocab.json");
  EXPECT_THAT(
      error(folder()),
      AllOf(HasSubstr("merges.txt: missing: GPT-2's tokenizer is "), HasSubstr("Put it there")));
  EXPECT_THAT(error(folder() + "/vocab.json"), HasSubstr("merges.txt: missing"));
}

TEST_F(TokenizerErrors, MergesThatDoNotFit) {
  std::filesystem::copy_file(golden("gpt2/vocab.json"), folder() + "/vocab.json");
  write("merges.txt", "#version: 0.2\nt h e\n");
  EXPECT_THAT(error(folder()),
              HasSubstr("merges.txt: line 2: expected two tokens with a space between them, got "
                        "\"t h e\""));
  write("merges.txt", "t h\r\nQ zz\n");
  EXPECT_THAT(error(folder()),
              AllOf(HasSubstr("vocab.json: line 2 of "),
                    HasSubstr("the token \"zz\" is not in the vocabulary. Do the two belong "
                              "together?")));
}

TEST_F(TokenizerErrors, VocabulariesThatAreNone) {
  write("merges.txt", "");
  write("vocab.json", "{\"a\": 0, ");
  EXPECT_THAT(error(folder()),
              AllOf(StartsWith("[text.gpt2_files] "), HasSubstr("not JSON, or damaged")));
  write("vocab.json", "[1]");
  EXPECT_THAT(error(folder()), HasSubstr("expected a JSON object, got another value"));
  write("vocab.json", "{}");
  EXPECT_THAT(error(folder()), HasSubstr("expected a vocabulary {\"token\": id, …}"));
  write("vocab.json", R"({"a": 0, "b": 0})");
  EXPECT_THAT(error(folder()),
              HasSubstr("two tokens have the id 0: expected one, \"b\" is the second"));
  for (const char* const id : {"-1", "1.5", "\"x\"", "65538"}) {
    write("vocab.json", std::string(R"({"a": )") + id + "}");
    EXPECT_THAT(error(folder()), HasSubstr("token \"a\": expected an id from 0 to 65537, got"));
  }
}

TEST_F(TokenizerErrors, JsonOfManyLevelsIsRefusedBeforeItExhaustsTheStack) {
  const std::string deep = R"({"model": )" + std::string(1 << 20, '[') + std::string(1 << 20, ']');
  EXPECT_THAT(error(write("tokenizer.json", deep + "}")),
              HasSubstr("expected JSON of at most 32 levels, got more. Is it another file?"));
}

TEST_F(TokenizerErrors, AByteThatTheVocabularyLacks) {
  write("merges.txt", "a b\n");
  write("vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  const Tokenizer tokenizer = open_tokenizer(folder());
  EXPECT_EQ(tokenizer.encode("aab"), (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(
      test::error_text<DataError>([&] { (void)tokenizer.encode("abc"); }),
      "[text.encode] the vocabulary has no token for byte 0x63, which the text has. Train the "
      "tokenizer with all 256 bytes as its first tokens");
}

TEST_F(TokenizerErrors, AnIdWithoutAToken) {
  write("merges.txt", "");
  write("vocab.json", R"({"a": 0, "b": 5})");
  const Tokenizer tokenizer = open_tokenizer(folder());
  EXPECT_EQ(tokenizer.vocab_size(), 6);
  EXPECT_THROW((void)tokenizer.decode(std::vector<int32_t>{3}), UsageError);
}

TEST_F(TokenizerErrors, WhatOfATokenizerJsonIsNotRead) {
  EXPECT_EQ(after([](json&) {}), "nothing was thrown");
  const auto refused = [](const std::string& what) {
    return AllOf(StartsWith("[text.tokenizer_json] "), HasSubstr(what + " is not read: got "));
  };
  EXPECT_THAT(after([](json& f) { f["normalizer"] = {{"type", "NFC"}}; }), refused("a normalizer"));
  EXPECT_EQ(after([](json& f) {
              f["normalizer"] = {{"type", "Sequence"}, {"normalizers", json::array()}};
            }),
            "nothing was thrown");
  EXPECT_THAT(after([](json& f) { f["model"]["type"] = "WordPiece"; }),
              refused("a model of another type than BPE"));
  EXPECT_THAT(after([](json& f) { f["model"]["end_of_word_suffix"] = "</w>"; }),
              refused("a model with \"end_of_word_suffix\""));
  EXPECT_THAT(after([](json& f) { f["model"]["dropout"] = 0.1; }), refused("a model with dropout"));
  EXPECT_THAT(after([](json& f) { f["model"]["byte_fallback"] = true; }),
              HasSubstr("a model with \"byte_fallback\""));
  EXPECT_THAT(after([](json& f) { f["added_tokens"][0]["single_word"] = true; }),
              refused("an added token of single words"));
  EXPECT_THAT(after([](json& f) {
                f["pre_tokenizer"] = {{"type", "Metaspace"}};
              }),
              refused("a pre-tokenizer other than ByteLevel, Split and Digits"));
  EXPECT_THAT(after([](json& f) {
                f["pre_tokenizer"] = {{"type", "Digits"}};
              }),
              refused("a pre-tokenizer that is not byte-level"));
  EXPECT_THAT(
      after([](json& f) { f["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed"; }),
      refused("a Split that is not isolated"));
  EXPECT_THAT(after([](json& f) {
                f["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {{"String", "x"}};
              }),
              refused("a Split without a regular expression"));
  EXPECT_THAT(after([](json& f) {
                f["decoder"] = {{"type", "WordPiece"}};
              }),
              refused("a decoder other than ByteLevel"));
}

TEST_F(TokenizerErrors, ATokenizerJsonThatIsDamaged) {
  EXPECT_THAT(after([](json& f) { f["model"]["merges"] = 3; }),
              HasSubstr("expected a list \"merges\", got 3"));
  EXPECT_THAT(after([](json& f) { f["model"]["merges"][5] = "one"; }),
              HasSubstr("merge 5: expected two tokens, got \"one\""));
  EXPECT_THAT(after([](json& f) {
                f["model"]["merges"][5] = {"a", "missing"};
              }),
              HasSubstr("merge 5: the token \"missing\" is not in the vocabulary"));
  EXPECT_THAT(after([](json& f) { f["model"]["ignore_merges"] = 1; }),
              HasSubstr("expected true or false for \"ignore_merges\", got 1"));
  EXPECT_THAT(after([](json& f) { f["added_tokens"][0].erase("id"); }),
              HasSubstr("an added token: expected an \"id\" from 0 to "));
  EXPECT_THAT(after([](json& f) { f["added_tokens"][0].erase("content"); }),
              HasSubstr("expected a string \"content\", got null in "));
  EXPECT_THAT(
      after([](json& f) { f["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "a(b"; }),
      HasSubstr("the pre-tokenizer's expression \"a(b\" cannot be read: missing closing "
                "parenthesis (near its byte 3)"));
}

TEST_F(TokenizerErrors, MatchesAloneAreAWayToCutToo) {
  json file = json::parse(*os::read_file(golden("llama3/tokenizer.json")));
  file["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed";
  file["pre_tokenizer"]["pretokenizers"][0]["invert"] = true;
  const Tokenizer same = open_tokenizer(write("tokenizer.json", file.dump()));
  EXPECT_EQ(same.encode("In the beginning"),
            open_tokenizer(golden("llama3")).encode("In the beginning"));
}

TEST_F(TokenizerErrors, EveryTornModelIsRefusedOrLacksItsEnd) {
  const std::string model = *os::read_file(golden("llama2.model"));
  EXPECT_THAT(error(write("x.model", "\n\xFF")),
              HasSubstr("damaged, or not a model of sentencepiece: expected a protobuf with "
                        "pieces. Fetch the file again, or check the path"));
  int refused = 0;
  for (size_t bytes = 1; bytes < model.size(); bytes += 7) {
    // A cut between pieces leaves a model without its trainer's options.
    refused += error(write("x.model", model.substr(0, bytes))) != "nothing was thrown" ? 1 : 0;
  }
  EXPECT_GT(refused, static_cast<int>(model.size() / 7 * 4 / 5));
}

// Fields of a protobuf by hand: a tag, and bytes with their number.
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string field(int number, int value) {
  std::string tag{static_cast<char>(number << 3 & 0x7F)};
  if (number > 15) {
    tag = {static_cast<char>((number << 3 & 0x7F) | 0x80), static_cast<char>(number >> 4)};
  }
  return tag + static_cast<char>(value);
}
std::string piece(const std::string& text, int type) {
  return field(1, field(1, text) + field(3, type));
}

TEST_F(TokenizerErrors, ModelsOfSentencepieceThatAreNotRead) {
  const std::string unknown = piece("<unk>", 2);
  const auto message = [&](const std::string& model) { return error(write("m.model", model)); };
  EXPECT_EQ(message(unknown + piece("a", 1)), "nothing was thrown");
  EXPECT_THAT(message(unknown + field(2, field(3, 4))),
              HasSubstr("a model of words or characters is not read: expected BPE or unigram"));
  EXPECT_THAT(message(unknown + field(2, field(3, 9))), HasSubstr("damaged, or not a model"));
  EXPECT_THAT(message(piece("a", 9)), HasSubstr("damaged, or not a model"));
  EXPECT_THAT(message(piece("", 1)), HasSubstr("damaged, or not a model"));
  EXPECT_THAT(message(unknown + field(2, field(24, 1))),
              HasSubstr("a model with treat_whitespace_as_suffix or a denormalizer is not read"));
  EXPECT_THAT(message(unknown + field(5, field(2, "map"))), HasSubstr("or a denormalizer"));
  EXPECT_THAT(message(unknown + piece("a", 1) + piece("a", 1)),
              HasSubstr("two pieces are \"a\": expected one"));
  EXPECT_THAT(message(piece("a", 1)), HasSubstr("expected a piece for what is unknown"));
  EXPECT_THAT(message(unknown + field(2, field(35, 1))),
              HasSubstr("expected a piece <0x00>, as the model falls back to bytes"));
  EXPECT_THAT(message(unknown + field(3, field(2, "12345"))),
              HasSubstr("damaged: the normalizer's map of characters contradicts its length"));
}

TEST(ByteAlphabet, IsGpt2s) {
  EXPECT_EQ(to_byte_characters(" a\n\xC3\xA9"), "ĠaĊÃ©");
  EXPECT_EQ(from_byte_characters("ĠaĊÃ©"), " a\n\xC3\xA9");
  EXPECT_EQ(from_byte_characters("東"), std::nullopt);
  EXPECT_EQ(from_byte_characters("\xFF"), std::nullopt);
}

}  // namespace
}  // namespace argosy::text
