#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/text/open_tokenizer.h"
#include "argosy/text/splitter.h"
#include "argosy/text/test_golden_text.h"
#include "argosy/text/train_bpe.h"

#include "tests/support/temp_dir.h"

// What Hugging Face's tokenizers and sentencepiece make of strings: every id, and what ids say.
namespace argosy::text {
namespace {

using Ids = std::vector<int32_t>;

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

TEST(TokenizerGolden, IdsAndTextAreTheOriginals) {
  std::map<std::string, int> strings;
  for (const nlohmann::json& line : golden_lines("ids")) {
    const auto name = line["tokenizer"].get<std::string>();
    const Tokenizer tokenizer = open_tokenizer(golden(name));
    const auto text = line["text"].get<std::string>();
    const auto ids = line["ids"].get<Ids>();
    EXPECT_EQ(tokenizer.encode(text), ids) << name << ": " << line["text"];
    EXPECT_EQ(tokenizer.decode(ids), line["decoded"].get<std::string>())
        << name << ": " << line["text"];
    ++strings[name];
  }
  for (const char* const name :
       {"gpt2", "llama3", "digits", "llama2.model", "unigram.model", "bpe_symbols.model"}) {
    EXPECT_GT(strings[name], 25) << name;
  }
}

TEST(TokenizerGolden, TextIsCutIntoTheSameWords) {
  const nlohmann::json llama3 =
      nlohmann::json::parse(*os::read_file(golden("llama3/tokenizer.json")));
  const std::map<std::string, Splitter> splitters{
      {"gpt2", Splitter(kGpt2Pattern, Splitter::Keep::kAll, "text.split", "")},
      {"llama3",
       Splitter(llama3["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"].get<std::string>(),
                Splitter::Keep::kAll,
                "text.split",
                "")}};
  int texts = 0;
  for (const nlohmann::json& line : golden_lines("cut")) {
    std::vector<std::string> words;
    splitters.at(line["tokenizer"].get<std::string>())
        .split(line["cut"].get<std::string>(),
               [&](std::string_view word) { words.emplace_back(word); });
    EXPECT_EQ(words, line["words"].get<std::vector<std::string>>()) << line["tokenizer"];
    ++texts;
  }
  EXPECT_GT(texts, 60);
}

TEST(TokenizerGolden, IdsThatNoTextGivesAreDecodedAsWell) {
  int lists = 0;
  for (const nlohmann::json& line : golden_lines("decode")) {
    const Tokenizer tokenizer = open_tokenizer(golden(line["tokenizer"].get<std::string>()));
    EXPECT_EQ(tokenizer.decode(line["decode"].get<Ids>()), line["decoded"].get<std::string>())
        << line["tokenizer"] << ": " << line["decode"];
    ++lists;
  }
  EXPECT_EQ(lists, 3 * 20);
}

TEST(TokenizerGolden, ByteLevelTokenizersGiveEveryByteBack) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) {
    bytes += static_cast<char>(byte);
    bytes += static_cast<char>(255 - byte);
  }
  bytes += "\xE6\x97 \xF0\x9F\x94 caf\xC3\xA9 \xED\xA0\x80";  // cut and forbidden characters
  for (const char* const name : {"gpt2", "llama3"}) {
    const Tokenizer tokenizer = open_tokenizer(golden(name));
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(bytes)), bytes) << name;
  }
  EXPECT_EQ(byte_tokenizer().decode(byte_tokenizer().encode(bytes)), bytes);
}

TEST(TokenizerGolden, TheCorpusAsAWholeIsThatOfItsLines) {
  // Long texts remember their words, and short ones do not.
  const std::string corpus = *os::read_file(golden("corpus.txt"));
  const Tokenizer tokenizer = open_tokenizer(golden("llama3"));
  Ids lines;
  size_t begin = 0;
  for (size_t end = 0; begin < corpus.size(); begin = end) {
    // Lines up to one that ends in no white space, before one that begins with none.
    do {
      end = std::min(corpus.find('\n', end), corpus.size() - 1) + 1;
    } while (end < corpus.size() &&
             (end < 2 || is_space(corpus[end - 2]) || is_space(corpus[end])));
    const Ids line = tokenizer.encode(std::string_view(corpus).substr(begin, end - begin));
    lines.insert(lines.end(), line.begin(), line.end());
  }
  EXPECT_EQ(tokenizer.encode(corpus), lines);
}

TEST(TrainBpeGolden, FindsTheMergesOfHuggingFacesTrainer) {
  const nlohmann::json line = golden_lines("merges").at(0);
  const std::string corpus = *os::read_file(golden("corpus.txt"));
  const test::TempDir folder;
  train_bpe(corpus, {.vocab_size = line["trained"].get<int64_t>() + 1})
      .save(folder.path().string());
  std::string merges = "#version: 0.2\n";
  for (const auto& merge : line["merges"]) {
    merges += merge.get<std::string>() + "\n";
  }
  EXPECT_EQ(*os::read_file(folder.path() / "merges.txt"), merges);
}

}  // namespace
}  // namespace argosy::text
